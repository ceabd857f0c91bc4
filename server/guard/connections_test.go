package guard

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// Of too many connections the one goes that was idle for the longest time; one with a request stays.
func TestConnections(t *testing.T) {
	s := newConnections(2)
	ended := func(c net.Conn) bool {
		return c.SetDeadline(time.Time{}) != nil
	}
	dial := func() (net.Conn, *connection) {
		c, other := net.Pipe()
		t.Cleanup(func() { c.Close(); other.Close() })
		return c, s.open(c)
	}
	a, first := dial()
	b, second := dial()
	first.begin()
	first.finish() // a had a request after b had none
	c, third := dial()
	if ended(a) || !ended(b) || ended(c) {
		t.Errorf("ended: a %v, b %v, c %v; want b alone", ended(a), ended(b), ended(c))
	}
	second.begin() // net/http had already read it
	second.finish()
	first.begin()
	third.begin()
	d, _ := dial()
	if ended(a) || ended(c) || !ended(d) {
		t.Error("a connection was not refused although all others have requests")
	}
	if open, n := s.figures(); open != 2 || n != 2 {
		t.Errorf("%d are open, %d were ended", open, n)
	}
	g := &Guard{connections: s}
	g.ConnState(d, http.StateClosed) // it is not known any more
	g.ConnState(a, http.StateHijacked)
	if e, _ := dial(); ended(e) {
		t.Error("a connection was refused although one was taken over")
	}
	first.finish()
}

// Without a bound none is closed.
func TestUnboundConnections(t *testing.T) {
	s := newConnections(-1)
	for range 100 {
		c, other := net.Pipe()
		defer other.Close()
		s.open(c)
	}
	if open, ended := s.figures(); open != 100 || ended != 0 {
		t.Errorf("%d are open, %d were ended", open, ended)
	}
}
