package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	compactStep = 500 // revisions of one transaction
	moveStep    = 200 // of one that moves rows, which takes longer
	busyPause   = 100 * time.Millisecond

	// On a full disk a delete frees nothing until the rows that it supersedes are gone. So
	// the history is at most this short then.
	fullHistory = 5 * time.Second
	fullEvery   = time.Second
)

// compactor moves the floor behind the history. Its goroutine is the only caller of
// Log.Compact in this process.
type compactor struct {
	*shared
	state *state
	face  face

	requests chan compactRequest
	wake     chan struct{} // has a token when rows below the floor are to be deleted

	mu   sync.Mutex
	pins map[*Pin]struct{} // from whose revisions on the history stays

	behind lag // the floor is not where the history ends

	// owned by the compactor's goroutine
	target int64     // newest revision known to be older than the history
	failed time.Time // since when compaction fails; zero if it works
	fit    fit       // of the old versions to the rules
	short  bool      // old versions have gone before their time, because there were too many
}

type compactRequest struct {
	revision int64
	done     chan error // has room for the answer
}

func (c *compactor) init() {
	c.requests = make(chan compactRequest)
	c.wake = make(chan struct{}, 1)
	c.pins = make(map[*Pin]struct{})
}

// pin keeps the history from p's revision on.
func (c *compactor) pin(p *Pin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins[p] = struct{}{}
}

func (c *compactor) at(p *Pin) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.revision
}

// move lets go of the history up to a newer revision that has the state of p.
func (c *compactor) move(p *Pin, revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.revision = max(p.revision, revision)
}

func (c *compactor) release(p *Pin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pins, p)
}

// unpinned returns target, or the oldest pin if that is lower.
func (c *compactor) unpinned(target int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.pins {
		target = min(target, p.revision)
	}
	return target
}

// sweep makes the compactor delete what is below the floor.
func (c *compactor) sweep() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *compactor) request(ctx context.Context, revision int64) error {
	r := compactRequest{revision, make(chan error, 1)}
	select {
	case c.requests <- r:
	case <-c.stop:
		return changelog.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *compactor) run() {
	ticker := time.NewTicker(c.o.CompactEvery)
	defer ticker.Stop()
	hurry := time.NewTicker(fullEvery)
	defer hurry.Stop()
	for {
		select {
		case <-ticker.C:
			c.state.dropIndexes(time.Now())
			c.logCompaction(errors.Join(c.compactHistory(c.o.History), c.trimPast(), c.boundPast()))
		case <-hurry.C:
			if errors.Is(c.log.Condition(), changelog.ErrFull) {
				c.logCompaction(c.compactHistory(min(c.o.History, fullHistory)))
			}
		case <-c.wake:
			c.logCompaction(c.face.compactTo(c.state.floor.Load()))
		case r := <-c.requests:
			r.done <- c.face.compactTo(r.revision)
		case <-c.stop:
			return
		}
	}
}

// logCompaction logs when compaction begins to fail and when it works again.
func (c *compactor) logCompaction(err error) {
	since := &c.failed
	switch {
	case c.ctx.Err() != nil, errors.Is(err, changelog.ErrClosed):
	case err != nil && since.IsZero():
		*since = time.Now()
		c.o.Log.Warn("compaction fails, old versions stay; it is tried again", "err", err)
	case err == nil && !since.IsZero():
		c.o.Log.Info("compaction works again", "after", time.Since(*since))
		*since = time.Time{}
	}
}

// compactHistory compacts what is older than the history; a negative one is for ever.
func (c *compactor) compactHistory(history time.Duration) error {
	if history < 0 {
		return nil
	}
	err := c.compactBefore(history)
	if err == nil && !c.belowHistory() {
		c.behind.ends()
	}
	return err
}

// belowHistory says that rows are older than the history. The newest row always stays.
func (c *compactor) belowHistory() bool {
	return c.state.floor.Load() < min(c.target, c.state.applied.Load()-1)
}

func (c *compactor) compactBefore(history time.Duration) error {
	target, err := c.newestBefore(time.Now().Add(-history).UnixMilli())
	if err != nil {
		return fmt.Errorf("find the end of the history: %w", err)
	}
	if c.target = target; c.belowHistory() {
		c.behind.begins()
	}
	return c.compactTo(c.unpinned(target))
}

// newestBefore returns the newest revision that was committed at or before a moment. It searches from
// where the last search ended.
func (c *compactor) newestBefore(moment int64) (int64, error) {
	return c.newestIn(c.ctx, max(c.target, c.state.floor.Load()), c.state.applied.Load(), moment)
}

// compactTo sweeps up to through, and makes that the floor.
func (c *compactor) compactTo(through int64) error {
	deleted, err := c.sweepTo(through)
	if err != nil {
		return err
	}
	return c.reclaim(deleted)
}

func (c *compactor) sweepTo(through int64) (deleted int64, err error) {
	return c.inSteps(through, func() (changelog.Compacted, error) {
		retention, limit := c.retentionNow(), compactStep
		if retention != nil {
			limit = moveStep
		}
		return c.log.Compact(c.ctx, through, limit, retention)
	})
}

// inSteps repeats step until it has come to through, or gets no further. Between two steps
// writers get as much time as a step took.
func (c *compactor) inSteps(through int64, step func() (changelog.Compacted, error)) (deleted int64, err error) {
	for swept := int64(-1); ; {
		begin := time.Now()
		done, err := step()
		if err != nil {
			return deleted, fmt.Errorf("compact up to %d: %w", through, err)
		}
		c.state.raiseFloor(done.Floor)
		deleted += done.Deleted
		c.stats.compactedDeleted.Add(done.Deleted)
		c.stats.kept.Add(done.Kept)
		if done.Busy || done.Swept >= through || done.Swept == swept {
			return deleted, nil
		}
		swept = done.Swept
		if c.pause(time.Since(begin)) {
			return deleted, changelog.ErrClosed
		}
	}
}

// reclaim gives the space of deleted rows back, if there are any.
func (c *compactor) reclaim(deleted int64) error {
	if deleted == 0 {
		return nil
	}
	if err := c.log.Reclaim(c.ctx); err != nil {
		return fmt.Errorf("reclaim space: %w", err)
	}
	return nil
}

// pause says whether the Store is closing.
func (c *compactor) pause(d time.Duration) (closing bool) {
	t := time.NewTimer(min(max(d, time.Millisecond), busyPause))
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-c.stop:
		return true
	}
}

// newestIn is RevisionAt between two revisions, the lower of which is old enough. Times never decrease
// with revisions, so it searches by halves.
func (s *shared) newestIn(ctx context.Context, low, high, moment int64) (int64, error) {
	for low < high {
		middle := low + (high-low+1)/2
		found, at, err := s.log.Time(ctx, middle)
		switch {
		case err != nil:
			return 0, err
		case found == 0 || found > high || at > moment:
			high = middle - 1
		default:
			low = found
		}
	}
	return low, nil
}
