package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/sleep"
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
	s.stop.once.Do(func() { s.stop.err = s.shutdown(ctx) })
	return s.stop.err
}

func (s *Server) shutdown(ctx context.Context) error {
	begun := time.Now()
	s.stopping.Store(true)
	if s.store != nil {
		s.store.Hurry()
	}
	_ = sleep.For(ctx, s.config.ShutdownDelay)
	s.background.end(ctx)
	s.leaveCluster(ctx)
	err := s.stopServing(ctx)
	err = errors.Join(err, s.database.close(), s.audit.Close(ctx))
	s.encryption.Close()
	s.logStopped(begun, err)
	return err
}

// leaveCluster takes this server out of the kubernetes Service, where others are in it. A database that
// has moved takes no writes any more, and clients wait for the end of this server.
func (s *Server) leaveCluster(ctx context.Context) {
	if !s.shared || !s.ready.Load() || errors.Is(s.store.Moved(ctx), changelog.ErrMoved) {
		return
	}
	if err := s.cluster.Leave(ctx); err != nil {
		s.config.Log.Warn("the kubernetes Service still has this server's address", "err", err)
	}
}

// cutOffGrace is how long requests have to notice that they have been cut off.
const cutOffGrace = time.Second

// stopServing returns when no request runs any more.
func (s *Server) stopServing(ctx context.Context) error {
	if s.http == nil { // Open has failed before
		s.cancel()
		if s.endDebugging != nil {
			s.endDebugging()
		}
		return nil
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.http.Shutdown(ctx) }()
	s.guard.Close()
	s.rest.Drain()
	s.extensions.Drain()
	err := s.linger(ctx, stopped)
	s.cancel()
	s.endDebugging()
	s.http.Close()
	s.serving.Wait()
	if err != nil {
		select {
		case <-s.guard.Idle():
		case <-time.After(cutOffGrace):
		}
	}
	s.extensions.Close()
	s.outside.transports.closeIdle()
	return err
}

// linger waits for the requests to end, and then for Config.Linger at most until clients
// have closed their connections: net/http has told them to, but keeps an HTTP/2
// connection for a second after that, and one that sent no request yet for five.
func (s *Server) linger(ctx context.Context, stopped <-chan error) error {
	select {
	case <-s.guard.Idle():
	case <-ctx.Done():
		s.stop.cutOff = s.guard.Running()
		return fmt.Errorf("requests that were still running have been cut off: %w", ctx.Err())
	}
	s.awaitAnswers(ctx)
	select {
	case <-stopped:
	case <-time.After(s.config.Linger):
	}
	return nil
}

// awaitAnswers waits until net/http has written what handlers have answered, but not for clients
// that do not read. It counts looks, not time: on a busy machine time passes without any work.
func (s *Server) awaitAnswers(ctx context.Context) {
	for look := 0; look < 200 && s.guard.Answering() > 0; look++ {
		_ = sleep.For(ctx, 5*time.Millisecond)
	}
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

// logStopped ends the log of a server that was ready.
func (s *Server) logStopped(begun time.Time, err error) {
	if !s.ready.Load() {
		return
	}
	level, attrs := slog.LevelInfo, []any{"took", time.Since(begun), "revision", s.store.Revision()}
	if s.stop.cutOff > 0 {
		level, attrs = slog.LevelWarn, append(attrs, "cutOff", s.stop.cutOff)
	}
	if err != nil {
		level, attrs = slog.LevelWarn, append(attrs, "err", err)
	}
	s.config.Log.Log(context.Background(), level, "stopped", attrs...)
}
