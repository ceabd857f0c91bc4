package server

import (
	"context"
	"errors"
	"syscall"

	"github.com/plinth-io/plinth/server/health"
	"github.com/plinth-io/plinth/sqlstore"
)

// probes are the health endpoints. A database that is away is no reason to restart
// plinth: livez leaves it out.
func (s *Server) probes() []*health.Probe {
	storage := health.Check{Name: "storage", Run: s.store.Healthy, Why: error.Error}
	if s.shared { // else it is a file, whose errors say nothing that not everybody may know
		storage.Why = storageReason
	}
	bootstrap := health.Check{Name: "bootstrap", Why: error.Error, Run: func() error {
		if !s.ready.Load() {
			return errors.New("not finished")
		}
		return nil
	}}
	shutdown := health.Check{Name: "shutdown", Why: error.Error, Run: func() error {
		if s.stopping.Load() {
			return errors.New("process is shutting down")
		}
		return nil
	}}
	return []*health.Probe{
		health.New("livez", s.config.Logf, health.Ping),
		health.New("healthz", s.config.Logf, health.Ping, storage, bootstrap),
		health.New("readyz", s.config.Logf, health.Ping, storage, bootstrap, shutdown),
	}
}

// databaseHealth is the storage check in words for everybody.
func (s *Server) databaseHealth() error {
	err := s.store.Healthy()
	if err != nil && s.shared {
		return errors.New(storageReason(err))
	}
	return err
}

// storageReason says why the database cannot be used without saying where it is or as
// whom it is used; the log has that.
func storageReason(err error) string {
	reason := "database error"
	if errors.Is(err, sqlstore.ErrUnavailable) {
		reason = "database unavailable"
	}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return reason + ": " + errno.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return reason + ": timeout"
	}
	return reason + "; the log says more"
}
