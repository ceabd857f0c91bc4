package guard

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/plinth-io/plinth/server/authn"
)

// connections bounds the number of open connections. When there are too many, the connection that has been idle for the
// longest time is closed; its client connects again when it has a request. If no connection is idle, the new one is
// closed.
type connections struct {
	most int

	mu    sync.Mutex // guards what follows
	known map[net.Conn]*connection
	used  *list.List // of *connection, the one that ended a request last at the back
	ended int64      // how many were closed because there were too many
}

// connection is one of a client's.
type connection struct {
	net.Conn
	all     *connections
	at      *list.Element
	running int  // requests
	active  bool // net/http reads a request or writes an answer
}

func newConnections(most int) *connections {
	return &connections{most: most, known: map[net.Conn]*connection{}, used: list.New()}
}

type connKey struct{}

// ConnContext is for http.Server: it lets requests find the connection that they came by,
// and what is known of the connection's client.
func (g *Guard) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(authn.WithConn(ctx), connKey{}, g.connections.open(c))
}

// ConnState is for http.Server: it tells which connections are in use, which are closed, and which
// have been taken over by a handler.
func (g *Guard) ConnState(c net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		g.connections.forget(c)
		return
	}
	g.connections.set(c, state == http.StateActive)
}

// Answering returns on how many connections a request or an answer is under way: net/http goes on
// writing when the handler has returned.
func (g *Guard) Answering() (n int) {
	s := g.connections
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.known {
		if c.active {
			n++
		}
	}
	return n
}

func (s *connections) open(c net.Conn) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &connection{Conn: c, all: s}
	if s.most > 0 && len(s.known) >= s.most {
		idle := s.idlest()
		if idle == nil {
			s.end(n)
			return n // net/http finds it closed
		}
		s.end(idle)
		s.remove(idle)
	}
	n.at = s.used.PushBack(n)
	s.known[c] = n
	return n
}

// idlest returns the connection that has been idle for the longest time, nil if none is idle. The caller holds s.mu.
func (s *connections) idlest() *connection {
	for e := s.used.Front(); e != nil; e = e.Next() {
		if n := e.Value.(*connection); n.running == 0 {
			return n
		}
	}
	return nil
}

// end closes a connection at once: TLS would first say goodbye, which may take seconds.
func (s *connections) end(n *connection) {
	s.ended++
	raw := n.Conn
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	_ = raw.Close()
}

func (s *connections) forget(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.known[c]; n != nil {
		s.remove(n)
	}
}

func (s *connections) set(c net.Conn, active bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.known[c]; n != nil {
		n.active = active
	}
}

func (s *connections) remove(n *connection) {
	delete(s.known, n.Conn)
	s.used.Remove(n.at)
}

// figures are for metrics.
func (s *connections) figures() (open int, ended int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known), s.ended
}

// begin and finish bracket a request. n is nil for a request in process.
func (n *connection) begin() {
	if n == nil {
		return
	}
	n.all.mu.Lock()
	n.running++
	n.all.mu.Unlock()
}

func (n *connection) finish() {
	if n == nil {
		return
	}
	n.all.mu.Lock()
	n.running--
	if n.at != nil {
		n.all.used.MoveToBack(n.at)
	}
	n.all.mu.Unlock()
}
