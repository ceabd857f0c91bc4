package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plinth-io/plinth/server/logging"
)

// NewHTTP returns a server of handler with the settings that plinth has on the wire. It is
// exported for the benchmarks, which compare plinth with other handlers on the same.
func NewHTTP(handler http.Handler, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *http.Server {
	return &http.Server{
		Handler: handler,
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			NextProtos:     []string{"h2", "http/1.1"},
			GetCertificate: certificate,
			// A bad certificate gets a 401 that says so, not a broken handshake.
			ClientAuth: tls.RequestClientCert,
		},
		// Like kube-apiserver; there is no write timeout, because watches are long.
		IdleTimeout:       90 * time.Second,
		ReadHeaderTimeout: 32 * time.Second,
		MaxHeaderBytes:    1 << 20,
		HTTP2: &http.HTTP2Config{
			// A controller manager has some hundred watches open on one connection.
			MaxConcurrentStreams: 1000,
			// Nearly every object fits in 256 KiB, so that its body comes in one go.
			MaxReceiveBufferPerStream:     256 << 10,
			MaxReceiveBufferPerConnection: 4<<20 - 1,
			MaxReadFrameSize:              256 << 10,
		},
	}
}

// errorLog takes net/http's log lines. Failed handshakes are counted and not logged:
// port scanners and probes that only connect would fill the log. The rest, which clients
// cause, is logged for debugging.
type errorLog struct {
	logger     *slog.Logger
	handshakes prometheus.Counter // that failed
	accepts    logging.Seldom
}

func (l *errorLog) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	switch {
	case strings.Contains(text, "TLS handshake error"):
		l.handshakes.Inc()
	case strings.HasPrefix(text, "http: Accept error"):
		l.accepts.Log(l.logger, slog.LevelWarn, "connections cannot be accepted; it is tried again", "err", text)
	default:
		l.logger.Debug("HTTP server reported a problem with a connection", "err", text)
	}
	return len(line), nil
}

// serve starts to accept connections.
func (s *Server) serve() {
	s.http = NewHTTP(s.front(), s.certificates.serving.Certificate)
	_ = s.config.Serving.Apply(s.http.TLSConfig) // Open has checked it
	s.http.BaseContext = func(net.Listener) context.Context { return s.ctx }
	s.http.ConnContext, s.http.ConnState = s.guard.ConnContext, s.guard.ConnState
	if s.config.MaxStreams > 0 {
		s.http.HTTP2.MaxConcurrentStreams = s.config.MaxStreams
	}
	s.http.ErrorLog = log.New(&errorLog{logger: s.config.Log, handshakes: s.metrics.TLSErrors}, "", 0)
	s.serving.Go(func() { s.guard.CutStalled(s.ctx, s.drainGrace) })
	s.serving.Go(func() {
		if err := s.http.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.Error("stopped listening", "address", s.listener.Addr(), "err", err)
		}
	})
}
