package guard

import (
	"context"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DrainGrace is how long a stopping server waits for a client that neither reads nor
	// sends.
	DrainGrace = time.Second
	// lookEvery is how often the server looks for clients that have stalled.
	lookEvery = 500 * time.Millisecond
)

// calls knows the running requests. One goroutine looks after them all, so that an idle
// watch costs no timer and a quick request none either.
type calls struct {
	mu      sync.Mutex // guards running
	running map[*Call]struct{}
}

func (c *calls) add(x *Call) {
	c.mu.Lock()
	c.running[x] = struct{}{}
	c.mu.Unlock()
}

func (c *calls) remove(x *Call) {
	c.mu.Lock()
	delete(c.running, x)
	c.mu.Unlock()
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.conn.finish()
}

func (c *calls) all() []*Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*Call, 0, len(c.running))
	for x := range c.running {
		all = append(all, x)
	}
	return all
}

// CutStalled runs until ctx ends. It cuts off clients that have not sent their body or read their answer by the
// request's deadline, and after Close those that neither send nor read for grace. Requests that wait for something
// else, such as the database, go on.
func (g *Guard) CutStalled(ctx context.Context, grace time.Duration) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var drainEnds time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if drainEnds.IsZero() && g.Closed() {
			drainEnds = now.Add(grace)
		}
		patience := time.Duration(math.MaxInt64)
		if !drainEnds.IsZero() && !now.Before(drainEnds) {
			patience = grace
		}
		for _, x := range g.calls.all() {
			x.cutIfStalled(now, patience)
		}
	}
}

// Blocked returns how many requests have waited for that long for their client to read, for
// tests.
func (g *Guard) Blocked(d time.Duration) (n int) {
	now := time.Now()
	for _, x := range g.calls.all() {
		if x.out.blocked.since(now) > d {
			n++
		}
	}
	return n
}

// Slow returns how many requests hold no seat because their clients are slow senders (client "body") or slow readers
// ("reader"), how many bytes they hold, and how many requests were ended to make room.
func (g *Guard) Slow(client string) (calls int, bytes, ended int64) {
	if client == "body" {
		return g.bodies.figures()
	}
	return g.answers.figures()
}

// aLongTimeAgo, as a deadline, ends a running read or write.
var aLongTimeAgo = time.Unix(1, 0)

func (x *Call) cutIfStalled(now time.Time, patience time.Duration) {
	x.mu.Lock() // the writer must not be touched once its request is over
	defer x.mu.Unlock()
	if x.over {
		return
	}
	reading := x.in.blocked.since(now)
	if reading > 0 && overdue(&x.in.until, now) || reading >= patience {
		x.cutReading()
	}
	if blocked := x.out.blocked.since(now); blocked > 0 && overdue(&x.out.until, now) || blocked >= patience {
		x.cutOff()
	}
}

// overdue tells whether a deadline in milliseconds is over; 0 is no deadline.
func overdue(until *atomic.Int64, now time.Time) bool {
	t := until.Load()
	return t != 0 && now.UnixMilli() > t
}

// cutReading ends the reading of the body.
func (x *Call) cutReading() {
	// An error says that the writer has no deadlines, as for requests in process.
	_ = http.NewResponseController(x.out.ResponseWriter).SetReadDeadline(aLongTimeAgo)
}

// cutOff breaks off the answer; in HTTP/2 it sends a frame for that. If the answer is still blocked
// at the next look, the connection takes no frames any more, and cutOff ends the connection.
func (x *Call) cutOff() {
	_ = http.NewResponseController(x.out.ResponseWriter).SetWriteDeadline(aLongTimeAgo)
	if x.cut && x.conn != nil {
		_ = x.conn.SetDeadline(aLongTimeAgo)
	}
	x.cut = true
}
