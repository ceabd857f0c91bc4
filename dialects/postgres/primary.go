package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A DSN may name several hosts, of which one is the primary now. The driver would ask one after the
// other, and wait for one that is switched off until its time is over. Here all are asked at once, and one
// that cannot be used is asked again while another one is silent, so that a standby that is promoted
// meanwhile is found. When the primary is another one than before, all connections to the other hosts are
// cut: they may wait for the answer of a machine that is gone, or be to a primary that does not know
// that it is none any more.

const (
	headStart = 200 * time.Millisecond // of the host that was the primary last
	askAgain  = 200 * time.Millisecond
)

// hosts are those of a DSN with several.
type hosts struct {
	each    []*host
	timeout time.Duration
	last    atomic.Int32 // the one that was the primary last
}

// host is one server, and the connections to it.
type host struct {
	config *pgx.ConnConfig // of this host alone
	dialer pgconn.DialFunc

	mu    sync.Mutex
	conns map[*connection]struct{}
}

// newHosts returns nil if there is one host only.
func newHosts(config *pgx.ConnConfig) *hosts {
	h := &hosts{timeout: config.ConnectTimeout}
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}, config.Fallbacks...)
	for _, way := range ways {
		if n := len(h.each); n > 0 && h.each[n-1].config.Host == way.Host && h.each[n-1].config.Port == way.Port {
			last := h.each[n-1].config // with TLS and without
			last.Fallbacks = append(last.Fallbacks, way)
			continue
		}
		one := &host{config: config.Copy(), dialer: config.DialFunc, conns: map[*connection]struct{}{}}
		one.config.Host, one.config.Port, one.config.TLSConfig, one.config.Fallbacks = way.Host, way.Port, way.TLSConfig, nil
		one.config.DialFunc = one.dial
		h.each = append(h.each, one)
	}
	if len(h.each) == 1 {
		return nil
	}
	return h
}

// choose makes config that of the primary alone.
func (h *hosts) choose(ctx context.Context, config *pgx.ConnConfig) error {
	if h == nil {
		return nil
	}
	n, err := h.primary(ctx)
	if err != nil {
		return err
	}
	found := h.each[n].config
	config.Host, config.Port, config.TLSConfig, config.Fallbacks, config.DialFunc = found.Host, found.Port, found.TLSConfig, found.Fallbacks, found.DialFunc
	return nil
}

type hostAnswer struct {
	host int
	err  error
}

// primary returns the first host that answers as the primary, or why none does.
func (h *hosts) primary(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	answers := make(chan hostAnswer)
	first := int(h.last.Load())
	go h.ask(ctx, first, answers)
	started := time.NewTimer(headStart)
	defer started.Stop()
	all := sync.OnceFunc(func() {
		for n := range h.each {
			if n != first {
				go h.ask(ctx, n, answers)
			}
		}
	})
	errs := make([]error, len(h.each))
	for unheard := len(h.each); unheard > 0; {
		select {
		case a := <-answers:
			if a.err == nil {
				h.found(a.host)
				return a.host, nil
			}
			if errs[a.host] == nil {
				unheard--
			}
			errs[a.host] = a.err
			all()
		case <-started.C:
			all()
		case <-ctx.Done():
			return 0, fmt.Errorf("no host answers as the primary: %w", errors.Join(append(errs, ctx.Err())...))
		}
	}
	return 0, errors.Join(errs...)
}

// ask tells whether a host is the primary, again and again until it is.
func (h *hosts) ask(ctx context.Context, n int, answers chan<- hostAnswer) {
	for {
		conn, err := pgx.ConnectConfig(ctx, h.each[n].config.Copy())
		if err == nil {
			go closeSoon(conn)
		}
		select {
		case answers <- hostAnswer{n, err}:
		case <-ctx.Done():
			return
		}
		if err == nil {
			return
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return
		}
	}
}

func closeSoon(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// found cuts the connections to other hosts if the primary was among them.
func (h *hosts) found(n int) {
	if int(h.last.Swap(int32(n))) == n {
		return
	}
	for i, other := range h.each {
		if i != n {
			other.cut()
		}
	}
}

// connection is one to a host, which forgets it when it is closed.
type connection struct {
	net.Conn
	of *host
}

func (o *host) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := o.dialer(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &connection{conn, o}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conns[c] = struct{}{}
	return c, nil
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (o *host) cut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		_ = c.Conn.Close()
	}
	clear(o.conns)
}
