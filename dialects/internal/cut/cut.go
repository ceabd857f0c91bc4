// Package cut makes network connections that can be cut all at once. It is for libraries
// that wait on a connection without a context: cutting the connection ends the waiting.
package cut

import (
	"context"
	"net"
	"sync"
)

// Dialer dials as Func does and remembers the connections.
type Dialer struct {
	Func func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	conns []net.Conn
	cut   bool
}

// Dial connects. After Cut it fails.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.Func(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut {
		conn.Close()
		return nil, net.ErrClosed
	}
	d.conns = append(d.conns, conn)
	return conn, nil
}

// Cut closes all connections, whatever they are used for.
func (d *Dialer) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = true
	for _, conn := range d.conns {
		conn.Close()
	}
	d.conns = nil
}
