#!/bin/sh
# A node: a kubelet and its container runtime, in user, mount and process namespaces of their
# own. The kubelet writes where it is used to, nothing of the machine changes, no privileges
# are needed, and all of it ends with this process.
#
# usage: node.sh BIN KUBELET-ARGUMENT...
if [ "$NODE" != inside ]; then
	export NODE=inside
	exec unshare --user --map-root-user --mount --pid --fork --mount-proc --kill-child "$0" "$@"
fi
set -e
bin=$1
shift
for dir in /run /var/lib /var/log; do
	mount -t tmpfs "node-${dir##*/}" $dir
done
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
{
	"$bin/runtime" /run/cri.sock
	echo "node.sh: the runtime has ended with $?" >&2
} &
# Not exec: whoever is process 1 has to wait for orphans.
"$bin/kubelet" --container-runtime-endpoint=unix:///run/cri.sock "$@"
