#!/bin/sh
# After the files are there: makes the user of the service, and restarts the service if it runs. A new installation is not
# started, because its settings decide which database it writes to.
set -e

if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers plinth.conf
elif ! getent passwd plinth >/dev/null; then
  useradd --system --user-group --no-create-home --home-dir /var/lib/plinth --shell /usr/sbin/nologin plinth
fi

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart plinth.service || true
fi

# $1 is "configure" without a version before (deb), or 1 (rpm), at the first installation.
if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
  echo "plinth: settings are in /etc/plinth/plinth.env; systemctl enable --now plinth starts it"
fi
