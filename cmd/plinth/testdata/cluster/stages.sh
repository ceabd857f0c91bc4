#!/bin/sh
# Prints the stages by which kwok simulates nodes and pods. Since 0.8 it has none of its own: these are
# the files of its stage-fast.yaml, from its module in Go's cache.
set -e
cd "$(dirname "$0")"
dir=$(GOWORK=off go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease \
	pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
	echo ---
	cat "$dir/$stage.yaml"
done
