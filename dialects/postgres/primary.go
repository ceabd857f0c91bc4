package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/singleflight"
)

// A DSN may name several hosts, of which one is the primary now. The driver would ask one after the
// other, and wait for one that is switched off until its time is over. Here all are asked at once, and one
// that cannot be used is asked again while another one is silent, so that a standby that is promoted
// meanwhile is found. When the primary is another one than before, all connections to the other hosts are
// cut: they may wait for the answer of a machine that is gone, or be to a primary that does not know
// that it is none any more. Such a one is told by its timeline, which each promotion raises: it is not used while
// another host is silent. A log that is opened knows no timeline yet, and hears all hosts first, for a moment.

const (
	headStart = 200 * time.Millisecond // of the host that was the primary last
	askAgain  = 200 * time.Millisecond
	hearing   = time.Second // of all hosts, when a log is opened; or half of a shorter connect_timeout
)

// hosts are those of a DSN with several.
type hosts struct {
	each     []*host
	timeout  time.Duration
	last     atomic.Int32 // the one that was the primary last
	timeline atomic.Int64 // of the primary

	asking singleflight.Group // one question to all hosts is enough for all who want a connection
	ctx    context.Context
	stop   func() // ends ctx
}

// host is one server, and the connections to it.
type host struct {
	config *pgx.ConnConfig // of this host alone
	dialer pgconn.DialFunc

	mu    sync.Mutex
	conns map[*connection]struct{}
	cuts  int
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
	h.ctx, h.stop = context.WithCancel(context.Background())
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
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = found.Host, found.Port, found.TLSConfig, found.Fallbacks
	config.DialFunc = h.each[n].dialUntilCut()
	return nil
}

type hostAnswer struct {
	host     int
	timeline int64 // 0: not known
	err      error
}

var errOldTimeline = errors.New("it is on an older timeline than the primary was")

// primary returns the first host that answers as the primary, or why none does.
func (h *hosts) primary(ctx context.Context) (int, error) {
	answer := h.asking.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(h.ctx, h.timeout)
		defer cancel()
		return h.askAll(ctx)
	})
	select {
	case r := <-answer:
		if r.Err != nil {
			return 0, r.Err
		}
		return r.Val.(int), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (h *hosts) askAll(ctx context.Context) (int, error) {
	answers := make(chan hostAnswer)
	first := int(h.last.Load())
	go h.ask(ctx, first, answers)
	all := sync.OnceFunc(func() {
		for n := range h.each {
			if n != first {
				go h.ask(ctx, n, answers)
			}
		}
	})
	started, heard := time.After(headStart), time.After(min(hearing, h.timeout/2))
	e := election{known: h.timeline.Load(), errs: make([]error, len(h.each)), unheard: len(h.each)}
	for {
		if chosen := e.chosen(); chosen != nil {
			return h.found(*chosen), nil
		}
		if e.unheard == 0 {
			return 0, errors.Join(e.errs...)
		}
		select {
		case a := <-answers:
			e.hear(a)
			all()
		case <-started:
			all()
		case <-heard:
			e.over = true
		case <-ctx.Done():
			return 0, fmt.Errorf("no host answers as the primary: %w", errors.Join(append(e.errs, ctx.Err())...))
		}
	}
}

// election chooses among the hosts that answer as the primary.
type election struct {
	known   int64       // the timeline of the primary, 0 when a log is opened
	over    bool        // the time is over in which all hosts are heard before one is chosen when a log is opened
	best    *hostAnswer // the one on the newest timeline
	errs    []error     // of each host
	unheard int         // hosts that have not answered
}

func (e *election) hear(a hostAnswer) {
	if a.err == nil {
		if e.best == nil || a.timeline > e.best.timeline {
			e.best = &a
		}
		a.err = errOldTimeline
	}
	if e.errs[a.host] == nil {
		e.unheard--
	}
	e.errs[a.host] = a.err
}

// chosen returns nil while there is none. An older timeline than the known one is that of a primary that others have
// replaced, or of all that a restore has left.
func (e *election) chosen() *hostAnswer {
	switch {
	case e.best == nil:
		return nil
	case e.unheard == 0, e.best.timeline == 0, // 0: another database, which has no timelines
		(e.known > 0 || e.over) && e.best.timeline >= e.known:
		return e.best
	}
	return nil
}

// ask tells whether a host is the primary, again and again until it is.
func (h *hosts) ask(ctx context.Context, n int, answers chan<- hostAnswer) {
	for {
		timeline, err := h.each[n].look(ctx)
		select {
		case answers <- hostAnswer{n, timeline, err}:
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

// look connects once, which fails at a standby, and returns the timeline.
func (o *host) look(ctx context.Context) (timeline int64, err error) {
	conn, err := pgx.ConnectConfig(ctx, o.config.Copy())
	if err != nil {
		return 0, err
	}
	defer func() { go closeSoon(conn) }()
	var file string
	err = conn.QueryRow(ctx, `SELECT pg_walfile_name(pg_current_wal_lsn())`, pgx.QueryExecModeSimpleProtocol).Scan(&file)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused): // other databases that speak Postgres' protocol have no such function
		return 0, nil
	case err != nil:
		return 0, err
	case len(file) < 8:
		return 0, nil
	}
	timeline, _ = strconv.ParseInt(file[:8], 16, 64)
	return timeline, nil
}

func closeSoon(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// found cuts the connections to other hosts if the primary was among them.
func (h *hosts) found(a hostAnswer) int {
	if a.timeline > 0 {
		h.timeline.Store(a.timeline)
	}
	if int(h.last.Swap(int32(a.host))) != a.host {
		for n, other := range h.each {
			if n != a.host {
				other.cut()
			}
		}
	}
	return a.host
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

// dialUntilCut returns a dial that fails after the next cut: the driver connects again to ask the server to cancel
// what a connection that was cut has asked for, and would wait for the answer.
func (o *host) dialUntilCut() pgconn.DialFunc {
	o.mu.Lock()
	defer o.mu.Unlock()
	cuts := o.cuts
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		o.mu.Lock()
		cut := o.cuts != cuts
		o.mu.Unlock()
		if cut {
			return nil, net.ErrClosed
		}
		return o.dial(ctx, network, address)
	}
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
	o.cuts++
}
