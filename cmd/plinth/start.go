package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/plinth-io/plinth/server"
)

// startGrace bounds how long a start may take to end by itself after a signal.
const startGrace = 1500 * time.Millisecond

// open starts the server. It returns soon after ctx ends, even if the start hangs in a call that
// takes no context, such as a read of a file system that does not answer. The process then ends
// in the middle of the start, which leaves nothing half-written.
func open(ctx context.Context, s *server.Server) error {
	return inTime(ctx, func() error { return s.Open(ctx) })
}

// inTime runs a start, which ends by itself soon after ctx does, if it can.
func inTime(ctx context.Context, start func() error) error {
	opened := make(chan error, 1)
	go func() { opened <- start() }()
	select {
	case err := <-opened:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-opened:
		return err
	case <-time.After(startGrace):
		return errors.New("the start did not end by itself")
	}
}

// notify tells the service manager that started the process, such as systemd for a unit with
// Type=notify, what the process is about to do. Without one it does nothing.
func notify(logger *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		logger.Warn("the service manager could not be told", "err", err)
	}
}

// readyState also has the address of the server, for systemctl status.
func readyState(url string) string { return daemon.SdNotifyReady + "\nSTATUS=serving " + url }

const stoppingState = daemon.SdNotifyStopping
