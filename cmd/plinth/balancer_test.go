package main

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	clientrest "k8s.io/client-go/rest"
)

// balancer is a TCP load balancer on loopback: a connection goes to the next target that accepts it. It
// knows nothing of health: who does not listen is passed over.
type balancer struct {
	listener net.Listener
	targets  []string // HOST:PORT
	running  sync.WaitGroup

	mu    sync.Mutex
	turn  int
	conns []net.Conn
}

// balance starts a balancer before servers with one authority, and returns the admin's configuration for
// the way through it.
func balance(t *testing.T, servers ...*process) (*balancer, *clientrest.Config) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	b := &balancer{listener: l}
	for _, s := range servers {
		b.targets = append(b.targets, s.address())
	}
	b.running.Go(b.accept)
	t.Cleanup(b.close)
	config := servers[0].config(t)
	config.Host = "https://" + l.Addr().String()
	return b, config
}

// address is HOST:PORT of a server.
func (p *process) address() string { return strings.TrimPrefix(p.url, "https://") }

func (b *balancer) accept() {
	for {
		from, err := b.listener.Accept()
		if err != nil {
			return
		}
		to := b.dial()
		if to == nil {
			from.Close()
			continue
		}
		b.mu.Lock()
		b.conns = append(b.conns, from, to)
		b.mu.Unlock()
		b.running.Go(func() { pass(from, to) })
		b.running.Go(func() { pass(to, from) })
	}
}

// pass carries what one side sends until that side ends, and then tells the other.
func pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
}

// dial connects to the next target that listens; nil: none does.
func (b *balancer) dial() net.Conn {
	b.mu.Lock()
	b.turn++
	order := slices.Concat(b.targets[b.turn%len(b.targets):], b.targets[:b.turn%len(b.targets)])
	b.mu.Unlock()
	for _, target := range order {
		if conn, err := net.Dial("tcp", target); err == nil {
			return conn
		}
	}
	return nil
}

func (b *balancer) close() {
	b.listener.Close()
	b.mu.Lock()
	for _, c := range b.conns {
		c.Close()
	}
	b.mu.Unlock()
	b.running.Wait()
}
