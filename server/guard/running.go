package guard

import (
	"sync"
	"sync/atomic"
)

// Running returns how many requests run, those in process too.
func (g *Guard) Running() int64 { return g.running.count.Load() }

// Close lets no more requests in: they are told to come back. Idle is closed when the last
// request has ended.
func (g *Guard) Close() { g.running.close() }

// Closed tells whether Close was called.
func (g *Guard) Closed() bool { return g.running.closed.Load() }

// Idle returns what is closed after Close, when no request runs any more.
func (g *Guard) Idle() <-chan struct{} { return g.running.idle }

// running counts requests. A sync.WaitGroup cannot be used: nothing may be added to it
// while somebody waits for it.
type running struct {
	count  atomic.Int64
	closed atomic.Bool
	once   sync.Once
	idle   chan struct{} // closed when closed is set and count has been 0 since
}

// enter counts a request in, unless close was called. A request that is let in must leave.
func (n *running) enter() bool {
	n.count.Add(1)
	if !n.closed.Load() {
		return true
	}
	n.leave()
	return false
}

func (n *running) leave() {
	if n.count.Add(-1) == 0 && n.closed.Load() {
		n.once.Do(func() { close(n.idle) })
	}
}

// close lets no more requests in; idle is closed when the last has left.
func (n *running) close() {
	n.count.Add(1)
	n.closed.Store(true)
	n.leave()
}
