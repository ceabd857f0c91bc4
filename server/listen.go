package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/plinth-io/plinth/server/auth"
	"github.com/plinth-io/plinth/server/control"
)

// listen takes the port, so that the real one is known to all that follows.
func (s *Server) listen() error {
	listener, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		var dns *net.DNSError
		var addr *net.AddrError
		if errors.As(err, &dns) || errors.As(err, &addr) {
			return configError("listen address %q: %w; write HOST:PORT, such as 127.0.0.1:6443", s.config.Listen, err)
		}
		return fmt.Errorf("cannot %w; choose another address, such as 127.0.0.1:0 for a free port", err)
	}
	s.listener = listener
	s.url = "https://" + reachable(s.config.Listen, listener.Addr())
	return nil
}

// reachable returns the address under which clients on this machine find a listener.
func reachable(asked string, real net.Addr) string {
	host, _, _ := net.SplitHostPort(asked)
	_, port, _ := net.SplitHostPort(real.String())
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// address is where the other machines of a cluster find this server: what it listens on,
// or the machine's first address if that is all of them.
func (s *Server) address() control.Address {
	real := s.listener.Addr().(*net.TCPAddr)
	at := control.Address{IP: real.IP, Port: real.Port, Shared: s.shared, Ranges: s.ranges.Addresses}
	if !real.IP.IsUnspecified() {
		return at
	}
	interfaces, _ := net.InterfaceAddrs() // none: nobody else can reach it
	for _, a := range interfaces {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			at.IP = n.IP
			return at
		}
	}
	return at
}

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

// serve starts to accept connections.
func (s *Server) serve() {
	s.http = NewHTTP(s.handler, s.pki.Serving)
	s.http.BaseContext = func(net.Listener) context.Context { return s.ctx }
	s.http.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return withConn(auth.WithConn(ctx), c)
	}
	s.http.ErrorLog = log.New(errorLog{s}, "", 0)
	s.serving.Go(s.cutStalled)
	s.serving.Go(func() {
		if err := s.http.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.config.Logf("stopped listening on %s: %v", s.listener.Addr(), err)
		}
	})
}

// errorLog takes net/http's log lines. Failed handshakes are counted and not logged:
// port scanners and probes that only connect would fill the log.
type errorLog struct{ s *Server }

func (l errorLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) {
		l.s.metrics.TLSErrors.Inc()
	} else {
		l.s.config.Logf("%s", bytes.TrimSpace(line))
	}
	return len(line), nil
}
