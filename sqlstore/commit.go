package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The path of a commit:
//
//  1. submit: the face (objects.Commit, Keys.Do) checks a change and queues it, and its caller waits.
//  2. await: the committer's goroutine (run) waits until a batch is due.
//  3. take: it moves what fits from the queue to a batch.
//  4. write: the face runs one transaction for the batch (objects.write, Keys.write). Health, witness and statistics
//     learn the outcome.
//  5. commit: the batch goes to the tail by the pipe. If the outcome is not known, the tail looks into the log and the
//     callers get the error; if the content was refused, each change is tried alone (commitEach).
//  6. apply: the tail reads what other processes wrote before (tail.applyBatch), and makes visible what the face says that
//     the batch has made (objects.prepare, Keys.prepare).
//  7. answer: the face gives each caller its entry, its conflict or its error (objects.answer, Keys.answer), and the batch
//     goes back to the pipe.

// committer collects changes into batches, with a goroutine of its own. While one batch is in its transaction the
// changes that come in queue up, and the next transaction takes them all; nothing
// waits for a clock, except what may (waiting.go). The batch then goes to the tail, which
// answers the callers, while the next transaction runs.
type committer struct {
	*shared
	health  *health
	heads   *headReader
	hints   *hints
	witness *witness
	authors *authors
	pipe    *pipe
	face    face

	maxCount int
	maxBytes int
	wake     chan struct{} // has a token when queue or closed changed

	mu      sync.Mutex
	queue   []*pending
	closed  bool
	hurried bool // nothing waits any more
}

func (c *committer) init(o Options) {
	c.maxCount, c.maxBytes = o.MaxBatch, o.MaxBatchBytes
	c.wake = make(chan struct{}, 1)
}

// submit is step 1: it queues p.
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

// abandoned returns the error of a caller that gives up waiting for p, nil if p was answered
// meanwhile.
func (c *committer) abandoned(ctx context.Context, p *pending) error {
	if c.withdraw(p) {
		err := ctx.Err()
		if c.health.healthy() != nil {
			err = deadlineError(ctx, changelog.ErrUnavailable)
		}
		return fmt.Errorf("nothing was written: %w", err)
	}
	select {
	case <-p.done:
		return nil
	default:
		return fmt.Errorf("%w: %w", changelog.ErrUnknown, ctx.Err())
	}
}

func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
}

func (c *committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run appends batches until the committer is closed and its queue is empty.
func (c *committer) run() {
	defer close(c.pipe.appended)
	for c.await(c.health.probeIn(), c.probe) {
		b := <-c.pipe.free
		c.take(b)
		if len(b.waiters) > 0 {
			c.commit(b)
		} else {
			c.pipe.free <- b
		}
	}
}

// await is step 2: it returns when there is something to take, or false at the end. While writes
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

// take is step 3: it moves what fits from the queue to b, if a batch is due. A second change of a key waits for
// the next batch, and so do those behind it for the same key.
func (c *committer) take(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, due := c.due(time.Now()); !due {
		return
	}
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
	n := len(b.waiters)
	return n == 0 || n < c.maxCount && b.bytes+p.bytes() <= c.maxBytes
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

// commit is steps 4 and 5: it runs b's transaction and hands b to the tail, or answers its callers if there
// is nothing for the tail to apply.
func (c *committer) commit(b *batch) {
	err := c.write(b)
	switch {
	case err == nil:
		c.pipe.appended <- b
		return
	case errors.Is(err, changelog.ErrUnknown):
		c.heads.addUnknown() // before callers get the error, so that their next Sync reads the head
		c.hints.lookFor(0)
		b.fail(err)
	case errors.Is(err, changelog.ErrUnavailable) || len(b.waiters) == 1:
		c.hints.noticeSetBack(err)
		b.fail(err)
	default:
		c.commitEach(b)
	}
	b.reset()
	c.pipe.free <- b
}

// commitEach tries every change alone after a batch has failed because of its content and
// nothing was written: one bad change must not fail its neighbours.
func (c *committer) commitEach(b *batch) {
	for i := range b.waiters {
		one := b.alone(i)
		if err := c.write(one); err != nil {
			if errors.Is(err, changelog.ErrUnknown) {
				c.heads.addUnknown()
				c.hints.lookFor(0)
			}
			c.hints.noticeSetBack(err)
			one.fail(err)
			continue
		}
		c.pipe.appended <- one
	}
}

// write is step 4: it runs the transaction, unless the database is known to be away.
func (c *committer) write(b *batch) error {
	if c.health.healthy() != nil {
		// The probe costs a round trip, and its outcome is known. Without it a database that
		// hangs would take the batch and leave its outcome unknown.
		if err := c.probe(); errors.Is(err, changelog.ErrUnavailable) {
			return err
		}
	}
	begin := time.Now()
	err := c.face.write(b)
	if err == nil {
		c.witness.sawBatch(b) // before the next batch, which must not be written if this one is lost
	}
	c.stats.appended(len(b.waiters), time.Since(begin))
	c.health.wrote(err)
	return err
}

// probe asks whether the database takes writes again: an empty batch takes the write
// lock and writes nothing. If the database is away, all callers in the queue get the
// probe's error: with a database that hangs they have waited long enough.
func (c *committer) probe() error {
	_, err := c.authors.boundedAppend(c.o.QueryTimeout, &batch{})
	c.health.probed(err)
	c.hints.noticeSetBack(err)
	if errors.Is(err, changelog.ErrUnavailable) {
		c.refuse(err)
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
