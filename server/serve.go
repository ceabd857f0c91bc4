package server

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
)

// serve starts to accept connections.
func (s *Server) serve() {
	s.http = NewHTTP(s.guard, s.certificates.Certificate)
	_ = s.config.Serving.Apply(s.http.TLSConfig) // Open has checked it
	s.http.BaseContext = func(net.Listener) context.Context { return s.ctx }
	s.http.ConnContext, s.http.ConnState = s.guard.ConnContext, s.guard.ConnState
	if s.config.MaxStreams > 0 {
		s.http.HTTP2.MaxConcurrentStreams = s.config.MaxStreams
	}
	s.http.ErrorLog = log.New(&errorLog{log: s.config.Log, handshakes: s.metrics.TLSErrors}, "", 0)
	s.serving.Go(func() { s.guard.CutStalled(s.ctx, s.drainGrace) })
	s.serving.Go(func() {
		if err := s.http.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.Error("stopped listening", "address", s.listener.Addr(), "err", err)
		}
	})
}
