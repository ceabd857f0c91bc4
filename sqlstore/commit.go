package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// committer collects changes into batches. While one batch is in its transaction the
// changes that come in queue up, and the next transaction takes them all; nothing
// waits for a clock. The batch then goes to the tail, which answers the callers, while
// the next transaction runs.
type committer struct {
	maxCount int
	maxBytes int
	wake     chan struct{} // has a token when queue or closed changed
	done     chan *batch   // batches to use again

	mu     sync.Mutex
	queue  []*pending
	closed bool
}

// pending is one change that somebody waits for.
type pending struct {
	change Change
	taken  bool          // guarded by committer.mu
	done   chan struct{} // has a token when entry and err are set
	entry  *Entry
	err    error
}

// batch is what one transaction appends. It belongs to the committer until it is sent
// to the tail.
type batch struct {
	changes  []Change
	waiters  []*pending // of changes
	keys     map[string]struct{}
	bytes    int
	appended Appended
}

// Commit appends one change and returns the entry it made, when that is durable and
// visible to readers of this Store. Errors are a *ConflictError if the expectation does
// not hold; ErrTooLarge; ErrUnavailable if nothing was written; ErrUnknown if the outcome
// is not known, which is also so when ctx ends during the transaction; ErrClosed.
func (s *Store) Commit(ctx context.Context, c Change) (*Entry, error) {
	if err := s.checkChange(&c); err != nil {
		return nil, err
	}
	p := newPending(c)
	if err := s.commits.submit(p); err != nil {
		return nil, err
	}
	select {
	case <-p.done:
		return p.result()
	case <-ctx.Done():
		return s.abandon(ctx, p)
	}
}

// abandon gives up waiting for p.
func (s *Store) abandon(ctx context.Context, p *pending) (*Entry, error) {
	key := p.change.Key
	if s.commits.withdraw(p) {
		return nil, fmt.Errorf("commit %s: %w", key, ctx.Err())
	}
	select {
	case <-p.done:
		return p.result()
	default:
		return nil, fmt.Errorf("commit %s: %w: %w", key, ErrUnknown, ctx.Err())
	}
}

// checkChange refuses what can be refused without the database.
func (s *Store) checkChange(c *Change) error {
	switch {
	case ResourceOf(c.Key) == "" || strings.ContainsFunc(c.Key, isControl):
		return fmt.Errorf("commit: %q is not a key", c.Key)
	case c.Delete && c.Expect == 0:
		return fmt.Errorf("commit %s: a delete must say what it deletes", c.Key)
	case len(c.Value) > s.o.MaxValueBytes:
		return fmt.Errorf("commit %s of %d bytes: %w", c.Key, len(c.Value), ErrTooLarge)
	}
	return s.checkExpect(c)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }

// checkExpect finds most conflicts without a transaction: revisions of a key only
// grow, so an expectation that the state has already gone past cannot hold in the log.
func (s *Store) checkExpect(c *Change) error {
	if c.Expect == 0 {
		return nil // a delete may be on its way
	}
	s.state.mu.RLock()
	current, applied := s.state.get(c.Key), s.state.applied.Load()
	s.state.mu.RUnlock()
	if c.Expect > applied || current != nil && current.Revision == c.Expect {
		return nil
	}
	s.stats.conflicts.Add(1)
	return &ConflictError{Key: c.Key, Expect: c.Expect, Current: current}
}

var pendings = sync.Pool{New: func() any { return &pending{done: make(chan struct{}, 1)} }}

func newPending(c Change) *pending {
	p := pendings.Get().(*pending)
	p.change = c
	return p
}

// result takes the outcome out of p and gives p back for use by another commit. A
// pending that is abandoned is not given back, since it will still be answered.
func (p *pending) result() (*Entry, error) {
	entry, err := p.entry, p.err
	p.change, p.taken, p.entry, p.err = Change{}, false, nil, nil
	pendings.Put(p)
	return entry, err
}

func (p *pending) answer(entry *Entry, err error) {
	p.entry, p.err = entry, err
	p.done <- struct{}{}
}

func (c *committer) init(o Options) {
	c.maxCount, c.maxBytes = o.MaxBatch, o.MaxBatchBytes
	c.wake = make(chan struct{}, 1)
	// Two suffice for the pipeline: one in its transaction, one being applied.
	c.done = make(chan *batch, 2)
	for range cap(c.done) {
		c.done <- &batch{keys: make(map[string]struct{})}
	}
}

func (c *committer) submit(p *pending) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.queue = append(c.queue, p)
	c.nudge()
	return nil
}

// withdraw takes p out of the queue and says whether it was still there.
func (c *committer) withdraw(p *pending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.taken {
		return false
	}
	for i, q := range c.queue {
		if q == p {
			c.queue = append(c.queue[:i], c.queue[i+1:]...)
			break
		}
	}
	return true
}

func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.nudge()
}

func (c *committer) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// runCommitter appends batches until the committer is closed and its queue is empty.
func (s *Store) runCommitter() {
	defer close(s.tail.commits)
	for s.commits.await(s.health.probeIn(), s.probe) {
		b := <-s.commits.done
		if s.commits.take(b); len(b.changes) > 0 {
			s.append(b)
		} else {
			s.commits.done <- b
		}
	}
}

// await returns when there is something to take, or false at the end. While writes
// fail it calls probe now and then, so that the Store finds out by itself when they
// work again.
func (c *committer) await(probeIn time.Duration, probe func()) bool {
	c.letQueue()
	c.mu.Lock()
	n, closed := len(c.queue), c.closed
	c.mu.Unlock()
	if n > 0 || closed {
		return n > 0
	}
	var timeout <-chan time.Time
	if probeIn > 0 {
		timeout = time.After(probeIn)
	}
	select {
	case <-c.wake:
		c.letQueue()
	case <-timeout:
		probe()
	}
	return true
}

// letQueue gives way to callers that are ready to run for as long as this makes the
// queue grow. Those whose commits were just answered come back together; taking the
// first of them alone would let a whole transaction go by for the others.
func (c *committer) letQueue() {
	for last := -1; ; {
		c.mu.Lock()
		n := len(c.queue)
		c.mu.Unlock()
		if n == last || n >= c.maxCount {
			return
		}
		last = n
		runtime.Gosched()
	}
}

// take moves what fits from the queue to b. A second change of a key waits for the
// next batch, and so do those behind it for the same key.
func (c *committer) take(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.queue[:0]
	for i, p := range c.queue {
		if i == 4*c.maxCount || !b.hasRoom(c, p) {
			rest = append(rest, c.queue[i:]...)
			break
		}
		if !b.add(p) {
			rest = append(rest, p)
		}
	}
	clear(c.queue[len(rest):])
	c.queue = rest
}

func (b *batch) hasRoom(c *committer, p *pending) bool {
	n := len(b.changes)
	return n == 0 || n < c.maxCount && b.bytes+len(p.change.Value) <= c.maxBytes
}

func (b *batch) add(p *pending) bool {
	if _, ok := b.keys[p.change.Key]; ok {
		return false
	}
	b.keys[p.change.Key] = struct{}{}
	b.changes = append(b.changes, p.change)
	b.waiters = append(b.waiters, p)
	b.bytes += len(p.change.Value) + len(p.change.Key)
	p.taken = true
	return true
}

func (b *batch) reset() {
	clear(b.changes)
	clear(b.waiters)
	clear(b.keys)
	*b = batch{changes: b.changes[:0], waiters: b.waiters[:0], keys: b.keys}
}

// append runs b's transaction and hands b to the tail, or answers its callers if there
// is nothing for the tail to apply.
func (s *Store) append(b *batch) {
	err := s.appendLog(b)
	switch {
	case err == nil:
		s.tail.commits <- b
		return
	case errors.Is(err, ErrUnknown):
		s.heads.lose() // before anybody hears of it, so that their next Sync reads the head
		s.tail.nudge(0)
		b.fail(err)
	case errors.Is(err, ErrUnavailable) || len(b.changes) == 1:
		b.fail(err)
	default:
		s.appendEach(b)
	}
	b.reset()
	s.commits.done <- b
}

// appendEach tries every change alone after an error that is not the database's state
// and wrote nothing: one bad change must not fail its neighbours.
func (s *Store) appendEach(b *batch) {
	for i, p := range b.waiters {
		one := &batch{changes: []Change{b.changes[i]}, waiters: []*pending{p}}
		if err := s.appendLog(one); err != nil {
			if errors.Is(err, ErrUnknown) {
				s.heads.lose()
				s.tail.nudge(0)
			}
			one.fail(err)
			continue
		}
		s.tail.commits <- one
	}
}

func (s *Store) appendLog(b *batch) error {
	begin := time.Now()
	appended, err := s.log.Append(s.ctx, b.changes)
	s.stats.appended(len(b.changes), time.Since(begin))
	s.health.wrote(err)
	if err != nil {
		return fmt.Errorf("append batch: %w", err)
	}
	b.appended = appended
	return nil
}

func (b *batch) fail(err error) {
	for _, p := range b.waiters {
		p.answer(nil, err)
	}
}

// probe asks whether the database takes writes again: an empty batch takes the write
// lock and writes nothing.
func (s *Store) probe() {
	_, err := s.log.Append(s.ctx, nil)
	s.health.wrote(err)
}
