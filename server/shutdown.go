package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/server/control"
)

// Close stops the server within Config.ShutdownTimeout; see Shutdown.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.ShutdownTimeout)
	defer cancel()
	return s.Shutdown(ctx)
}

// Shutdown stops the server in an order that drops nothing: /readyz fails and
// Config.ShutdownDelay passes; background work ends; no more connections are accepted;
// watches end as if their time were over, so that clients resume where they were; other
// requests finish; the store writes what is queued and closes the database; audit events
// that wait to be sent are. When ctx ends, requests that still run are cut off, and events
// that nobody takes are lost; the error says so. Calls after the first wait for it and
// return the same.
func (s *Server) Shutdown(ctx context.Context) error {
	s.shutdownOnce.Do(func() { s.shutdownErr = s.shutdown(ctx) })
	return s.shutdownErr
}

func (s *Server) shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	sleep(ctx, s.config.ShutdownDelay)
	s.stopJobs()
	s.waitJobs(ctx)
	s.leaveCluster(ctx)
	err := s.stopServing(ctx)
	return errors.Join(err, s.closeStore(), s.audit.Close(ctx))
}

// waitJobs waits for background work to end, but lets none hold up the stop for ever: what
// is left has its requests cut off with everybody else's.
func (s *Server) waitJobs(ctx context.Context) {
	ended := make(chan struct{})
	go func() { s.jobs.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		s.config.Logf("stop: background work did not end in time")
	}
}

// leaveCluster takes this server out of the kubernetes Service, where others are in it.
func (s *Server) leaveCluster(ctx context.Context) {
	if !s.shared || !s.ready.Load() {
		return
	}
	if err := control.RemoveEndpoint(ctx, s.InProcess(nil), s.address()); err != nil {
		s.config.Logf("leave the kubernetes Service: %v", err)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// cutOffGrace is how long requests have to notice that they have been cut off.
const cutOffGrace = time.Second

// stopServing returns when no request runs any more.
func (s *Server) stopServing(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.http.Shutdown(ctx) }()
	s.running.close()
	s.rest.Drain()
	s.extensions.Drain()
	err := s.linger(ctx, stopped)
	s.cancel()
	s.http.Close()
	s.serving.Wait()
	if err != nil {
		select {
		case <-s.running.idle:
		case <-time.After(cutOffGrace):
		}
	}
	s.extensions.Close()
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
	return err
}

// linger waits for the requests to end, and then for Config.Linger at most until clients
// have closed their connections: net/http has told them to, but keeps an HTTP/2
// connection for a second after that, and one that sent no request yet for five.
func (s *Server) linger(ctx context.Context, stopped <-chan error) error {
	select {
	case <-s.running.idle:
	case <-ctx.Done():
		return fmt.Errorf("requests that were still running have been cut off: %w", ctx.Err())
	}
	select {
	case <-stopped:
	case <-time.After(s.config.Linger):
	}
	return nil
}

func (s *Server) closeStore() error {
	if s.store == nil {
		return nil
	}
	if err := s.store.Close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// abandon undoes an Open that failed half-way.
func (s *Server) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http == nil && s.listener != nil {
		s.listener.Close()
	}
	_ = s.Shutdown(ctx)
}
