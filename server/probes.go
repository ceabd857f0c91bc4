package server

import (
	"errors"

	"github.com/plinth-io/plinth/server/health"
)

// probes are the health endpoints. A database that is away is no reason to restart
// plinth: livez leaves it out.
func (s *Server) probes() []*health.Probe {
	storage := health.Check{Name: "storage", Run: s.store.Healthy}
	bootstrap := health.Check{Name: "bootstrap", Run: func() error {
		if !s.ready.Load() {
			return errors.New("not finished")
		}
		return nil
	}}
	shutdown := health.Check{Name: "shutdown", Run: func() error {
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
