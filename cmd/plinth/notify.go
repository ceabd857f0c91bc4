package main

import (
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notify tells the service manager that started the process, such as systemd for a unit with
// Type=notify, what the process is about to do. Without one it does nothing.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("the service manager could not be told", "err", err)
	}
}

// readyState also has the address of the server, for systemctl status.
func readyState(url string) string { return daemon.SdNotifyReady + "\nSTATUS=serving " + url }

const stoppingState = daemon.SdNotifyStopping
