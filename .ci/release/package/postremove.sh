#!/bin/sh
# After the files went. The data stays, and so does its owner: no package removes a database.
set -e

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi

case "$1" in
remove | 0)
  if [ -d /var/lib/plinth ]; then
    echo "plinth: /var/lib/plinth stays, with the database and the keys; so does the user plinth"
  fi
  ;;
esac
