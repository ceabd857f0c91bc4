#!/bin/sh
# Before the files go: stops the service, unless another version of the package takes its place. $1 is "remove" (deb) or 0
# (rpm) then.
set -e

case "$1" in
remove | 0)
  if [ -d /run/systemd/system ]; then
    systemctl disable --now plinth.service || true
  fi
  ;;
esac
