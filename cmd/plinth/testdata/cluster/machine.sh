#!/bin/sh
# A machine on which root pastes the line of plinth join-command. Like that of node.sh it is namespaces of its own: /etc
# and the kubelet's folder are those below ROOT. There is no systemd: systemctl is a stand-in, and what it was told
# to restart is then run here, as systemd reads the files of the unit. sudo does nothing, as for root.
#
# usage: machine.sh ROOT BIN LINE, where LINE is a file
if [ "$NODE" != inside ]; then
	export NODE=inside
	exec unshare --user --map-root-user --mount --pid --fork --mount-proc --kill-child "$0" "$@"
fi
set -e
root=$1 bin=$2 line=$3
for dir in /run /var/lib /var/log; do
	mount -t tmpfs "machine-${dir##*/}" $dir
done
mkdir -p /run/systemd/system /run/containerd /var/lib/kubelet
for dir in /etc /var/lib/kubelet; do
	mount --bind "$root$dir" $dir
done
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys

mkdir /run/bin
PATH=/run/bin:$PATH
ln -s "$bin/kubelet" /run/bin/kubelet
cat >/run/bin/sudo <<'EOF'
#!/bin/sh
exec "$@"
EOF
cat >/run/bin/systemctl <<'EOF'
#!/bin/sh
echo "$@" >>/run/systemctl.log
EOF
chmod +x /run/bin/sudo /run/bin/systemctl

{
	"$bin/runtime" /run/containerd/containerd.sock
	echo "machine.sh: the runtime has ended with $?" >&2
} &
until [ -S /run/containerd/containerd.sock ]; do sleep 0.1; done

sh "$line"
[ "$(cat /run/systemctl.log)" = "daemon-reload
enable kubelet
restart kubelet" ]

# Drop-ins come after the unit, and an empty ExecStart forgets those before it.
unit=/etc/systemd/system/kubelet.service
start=$(cat $unit $unit.d/*.conf | awk '/^ExecStart=/ { sub(/^ExecStart=/, ""); all = $0 == "" ? "" : all $0 } END { print all }')
variables=$(sed -n 's/^EnvironmentFile=-//p' $unit)
[ ! -e "$variables" ] || . "$variables"
echo "machine.sh: $start" >&2
# systemd splits ${NAME} never and $NAME at blanks, as the shell does. Not exec: whoever is process 1 has to wait for orphans.
eval "$start"
