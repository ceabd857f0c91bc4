package etcd

import (
	"crypto/tls"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	protocolHTTP2 = "h2"
	protocolHTTP1 = "http/1.1"
	prefaceHTTP2  = "PRI" // the first bytes of an HTTP/2 connection, and of no HTTP/1 request
)

// recognize finds out by the first bytes whether a connection is for gRPC. With TLS, the protocols that the
// client offers decide: clients of gRPC offer only HTTP/2. Clients that also offer HTTP/1 go to net/http,
// which serves both.
func (t *Transport) recognize(c net.Conn, secure bool) (conn net.Conn, isGRPC bool, err error) {
	if err := c.SetDeadline(time.Now().Add(firstBytes)); err != nil {
		return c, false, err
	}
	conn = c
	if secure {
		offer := &offering{Conn: c}
		server := tls.Server(offer, t.tls)
		if err := server.Handshake(); err != nil {
			return c, false, err
		}
		conn = server
		if agreed := server.ConnectionState().NegotiatedProtocol; agreed != "" {
			return conn, agreed == protocolHTTP2 && !offer.http1, c.SetDeadline(time.Time{})
		}
	}
	first, err := readFirst(conn)
	if err != nil {
		return c, false, err
	}
	return &peeked{Conn: conn, first: first}, string(first) == prefaceHTTP2, c.SetDeadline(time.Time{})
}

// readFirst reads until it is known whether c begins like HTTP/2.
func readFirst(c io.Reader) ([]byte, error) {
	first := make([]byte, 0, len(prefaceHTTP2))
	for len(first) < len(prefaceHTTP2) && string(first) == prefaceHTTP2[:len(first)] {
		n, err := c.Read(first[len(first):cap(first)])
		first = first[:len(first)+n]
		if err != nil {
			return nil, err
		}
	}
	return first, nil
}

// peeked is a connection whose first bytes have been read.
type peeked struct {
	net.Conn
	first []byte
}

func (p *peeked) Read(into []byte) (int, error) {
	if len(p.first) == 0 {
		return p.Conn.Read(into)
	}
	n := copy(into, p.first)
	p.first = p.first[n:]
	return n, nil
}

// offering is a connection with the information whether its client has offered HTTP/1.
type offering struct {
	net.Conn
	http1 bool
}

// noteProtocols is a tls.Config's GetConfigForClient.
func noteProtocols(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if offer, ok := hello.Conn.(*offering); ok {
		offer.http1 = slices.Contains(hello.SupportedProtos, protocolHTTP1)
	}
	return nil, nil
}

// handoff is a net.Listener of connections that were accepted elsewhere.
type handoff struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newHandoff() *handoff { return &handoff{conns: make(chan net.Conn), done: make(chan struct{})} }

// give passes a connection on. It returns false if the handoff is closed.
func (h *handoff) give(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.done:
		return false
	}
}

// Accept implements net.Listener.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener. Connections have their own addresses.
func (h *handoff) Addr() net.Addr { return &net.TCPAddr{} }
