package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// answerGrace is how long after a request's time its answer may still be on its way.
	answerGrace = 2 * time.Second
	// drainGrace is how long a stopping server waits for a client that neither reads nor
	// sends.
	drainGrace = time.Second
	// lookEvery is how often the server looks for clients that have stalled.
	lookEvery = 500 * time.Millisecond
)

// calls knows the running requests. One goroutine looks after them all, so that an idle
// watch costs no timer and a quick request none either.
type calls struct {
	mu      sync.Mutex // guards running
	running map[*call]struct{}
}

func (c *calls) add(x *call) {
	c.mu.Lock()
	c.running[x] = struct{}{}
	c.mu.Unlock()
}

func (c *calls) remove(x *call) {
	c.mu.Lock()
	delete(c.running, x)
	c.mu.Unlock()
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
}

func (c *calls) all() []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*call, 0, len(c.running))
	for x := range c.running {
		all = append(all, x)
	}
	return all
}

// cutStalled cuts off clients that do not send or read within a request's time, and when the
// server stops, those that neither read nor send. Nobody else's request is touched: one
// that waits for the database is not waiting for its client.
func (s *Server) cutStalled() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var drainEnds time.Time
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if drainEnds.IsZero() && s.running.closed.Load() {
			drainEnds = now.Add(drainGrace)
		}
		draining := !drainEnds.IsZero() && !now.Before(drainEnds)
		for _, x := range s.calls.all() {
			x.cutIfStalled(now, draining)
		}
	}
}

// follow makes the call known, and its reads and writes visible, until it is removed.
func (s *Server) follow(x *call) {
	w, r := x.Response(), x.Request()
	x.out.ResponseWriter = w.Writer
	w.Writer = &x.out
	if r.ContentLength != 0 {
		x.in.ReadCloser = r.Body
		r.Body = &x.in
	}
	x.conn, _ = r.Context().Value(connKey{}).(net.Conn)
	s.calls.add(x)
}

// aLongTimeAgo, as a deadline, ends what is going on.
var aLongTimeAgo = time.Unix(1, 0)

func (x *call) cutIfStalled(now time.Time, draining bool) {
	x.mu.Lock() // the writer must not be touched once its request is over
	defer x.mu.Unlock()
	if x.over {
		return
	}
	reading := x.in.blocked.since(now)
	if reading > 0 && late(&x.in.until, now) || draining && reading >= drainGrace {
		// An error says that the writer has no such thing, as for requests in process.
		_ = http.NewResponseController(x.out.ResponseWriter).SetReadDeadline(aLongTimeAgo)
	}
	if blocked := x.out.blocked.since(now); blocked > 0 && late(&x.out.until, now) || blocked >= drainGrace && draining {
		x.cutOff()
	}
}

func late(until *atomic.Int64, now time.Time) bool {
	t := until.Load()
	return t != 0 && now.UnixMilli() > t
}

// cutOff breaks off the answer; HTTP/2 by a frame of its own. Where that has not helped
// by the next time, the connection takes no frames any more and is of no use to others.
func (x *call) cutOff() {
	_ = http.NewResponseController(x.out.ResponseWriter).SetWriteDeadline(aLongTimeAgo)
	if x.cut && x.conn != nil {
		_ = x.conn.SetDeadline(aLongTimeAgo)
	}
	x.cut = true
}

type connKey struct{}

// withConn lets requests find the connection that they came by.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// blocked is when a read or write began that has not ended, 0 when there is none.
type blocked struct{ begun atomic.Int64 }

func (b *blocked) begin() { b.begun.Store(time.Now().UnixNano()) }
func (b *blocked) end()   { b.begun.Store(0) }

func (b *blocked) since(now time.Time) time.Duration {
	begun := b.begun.Load()
	if begun == 0 {
		return 0
	}
	return time.Duration(now.UnixNano() - begun)
}

// out is a response writer that shows whether its client reads.
type out struct {
	http.ResponseWriter
	blocked blocked
	until   atomic.Int64 // Unix time in ms from which a blocked write is cut off; 0: never
}

func (o *out) Write(p []byte) (int, error) {
	o.blocked.begin()
	defer o.blocked.end()
	return o.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController flushes by.
func (o *out) FlushError() error {
	o.blocked.begin()
	defer o.blocked.end()
	return http.NewResponseController(o.ResponseWriter).Flush()
}

// SetWriteDeadline is for http.ResponseController; it takes effect at the server's next
// look.
func (o *out) SetWriteDeadline(t time.Time) error {
	o.until.Store(t.UnixMilli())
	return nil
}

// Unwrap gives http.ResponseController the rest.
func (o *out) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// in is a request's body that shows whether its client sends.
type in struct {
	io.ReadCloser
	blocked blocked
	until   atomic.Int64 // as out's; a deadline of net/http's would cost each write a timer
}

func (i *in) Read(p []byte) (int, error) {
	i.blocked.begin()
	defer i.blocked.end()
	return i.ReadCloser.Read(p)
}
