package sqlstore

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// committer collects changes into batches. While one batch is in its transaction the
// changes that come in queue up, and the next transaction takes them all; nothing
// waits for a clock, except what may (waiting.go). The batch then goes to the tail, which
// answers the callers, while the next transaction runs.
type committer struct {
	maxCount int
	maxBytes int
	wake     chan struct{} // has a token when queue or closed changed
	done     chan *batch   // batches to use again

	mu      sync.Mutex
	queue   []*pending
	closed  bool
	hurried bool // nothing waits any more

	written int64 // newest id of transactions; owned by the committer's goroutine
}

func (c *committer) init(o Options) {
	c.maxCount, c.maxBytes = o.MaxBatch, o.MaxBatchBytes
	c.wake = make(chan struct{}, 1)
	// The pipeline needs two batches: one in its transaction, one being applied.
	c.done = make(chan *batch, 2)
	for range cap(c.done) {
		c.done <- &batch{keys: make(map[string]struct{})}
	}
}

func (c *committer) submit(p *pending) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return changelog.ErrClosed
	}
	c.queue = append(c.queue, p)
	c.signal()
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
	c.signal()
}

// inFlight says that a batch is in its transaction or on its way to the tail.
func (c *committer) inFlight() bool { return len(c.done) < cap(c.done) }

func (c *committer) signal() {
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
		s.commits.take(b)
		if len(b.waiters) > 0 {
			s.append(b)
		} else {
			s.commits.done <- b
		}
	}
}

// await returns when there is something to take, or false at the end. While writes
// fail it calls probe now and then, so that the Store finds out by itself when they
// work again.
func (c *committer) await(probeIn time.Duration, probe func() error) bool {
	c.yieldWhileQueueGrows()
	c.mu.Lock()
	wait, due := c.due(time.Now())
	ended := c.closed && len(c.queue) == 0
	c.mu.Unlock()
	if due || ended {
		return due
	}
	select {
	case <-c.wake:
		c.yieldWhileQueueGrows()
	case <-timeout(wait):
	case <-timeout(probeIn):
		_ = probe() // which health remembers
	}
	return true
}

// timeout is time.After, and never for 0.
func timeout(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// yieldWhileQueueGrows gives way to callers that are ready to run, for as long as this
// makes the queue grow. Callers whose commits were just answered come back together; a
// batch with the first of them alone would make the others wait for a whole transaction.
func (c *committer) yieldWhileQueueGrows() {
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

// append runs b's transaction and hands b to the tail, or answers its callers if there
// is nothing for the tail to apply.
func (s *Store) append(b *batch) {
	err := s.appendLog(b)
	switch {
	case err == nil:
		s.tail.commits <- b
		return
	case errors.Is(err, changelog.ErrUnknown):
		s.heads.addUnknown() // before callers get the error, so that their next Sync reads the head
		s.tail.lookFor(0)
		b.fail(err)
	case errors.Is(err, changelog.ErrUnavailable) || len(b.waiters) == 1:
		s.noticeSetBack(err)
		b.fail(err)
	default:
		s.appendEach(b)
	}
	b.reset()
	s.commits.done <- b
}

// appendEach tries every change alone after a batch has failed because of its content and
// nothing was written: one bad change must not fail its neighbours.
func (s *Store) appendEach(b *batch) {
	for i := range b.waiters {
		one := b.alone(i)
		if err := s.appendLog(one); err != nil {
			if errors.Is(err, changelog.ErrUnknown) {
				s.heads.addUnknown()
				s.tail.lookFor(0)
			}
			s.noticeSetBack(err)
			one.fail(err)
			continue
		}
		s.tail.commits <- one
	}
}

func (s *Store) appendLog(b *batch) error {
	if s.Healthy() != nil {
		// The probe costs a round trip, and its outcome is known. Without it a database that
		// hangs would take the batch and leave its outcome unknown.
		if err := s.probe(); errors.Is(err, changelog.ErrUnavailable) {
			return err
		}
	}
	begin := time.Now()
	err := s.write(b)
	if err == nil {
		s.sawBatch(b) // before the next batch, which must not be written if this one is lost
	}
	s.stats.appended(len(b.waiters), time.Since(begin))
	s.health.wrote(err)
	return err
}

func (s *Store) write(b *batch) (err error) {
	if s.raw {
		return s.transact(b)
	}
	b.appended, err = s.boundedAppend(s.o.AppendTimeout, b)
	return err
}

// probe asks whether the database takes writes again: an empty batch takes the write
// lock and writes nothing. If the database is away, all callers in the queue get the
// probe's error: with a database that hangs they have waited long enough.
func (s *Store) probe() error {
	_, err := s.boundedAppend(s.o.QueryTimeout, &batch{})
	s.health.probed(err)
	s.noticeSetBack(err)
	if errors.Is(err, changelog.ErrUnavailable) {
		s.commits.refuse(err)
	}
	return err
}

// refuse answers all callers in the queue with err.
func (c *committer) refuse(err error) {
	c.mu.Lock()
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	for _, p := range queue {
		p.answer(nil, err)
	}
}
