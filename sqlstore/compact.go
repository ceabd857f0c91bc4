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
	keepStep    = 200 // of one that moves rows, which takes longer
	busyPause   = 100 * time.Millisecond

	// On a full disk a delete frees nothing until the rows that it supersedes are gone. So
	// the history is at most this short then.
	fullHistory = 5 * time.Second
	fullEvery   = time.Second
)

// compactor moves the floor behind the history. Its goroutine is the only caller of
// Log.Compact in this process.
type compactor struct {
	requests chan compactRequest
	wake     chan struct{} // has a token when rows below the floor are to be deleted

	mu   sync.Mutex
	pins map[*Pin]struct{} // from whose revisions on the history stays

	behind lag // the floor is not where the history ends

	// owned by the compactor's goroutine
	target int64     // newest revision known to be older than the history
	failed time.Time // since when compaction fails; zero if it works
	fit    fit       // of the old versions to the rules
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

// CompactTo moves the floor up to revision now, whatever the history is, and returns
// when the rows below are deleted. The newest row always stays, so that the floor may
// end one below revision. For tests and tools. Raw keys are compacted by CutTo.
func (s *Store) CompactTo(ctx context.Context, revision int64) error {
	r := compactRequest{revision, make(chan error, 1)}
	select {
	case s.compact.requests <- r:
	case <-s.stop:
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

func (s *Store) runCompactor() {
	ticker := time.NewTicker(s.o.CompactEvery)
	defer ticker.Stop()
	hurry := time.NewTicker(fullEvery)
	defer hurry.Stop()
	if s.raw && s.Floor() > 0 {
		s.compact.sweep() // what the process before left
	}
	for {
		select {
		case <-ticker.C:
			s.state.dropIndexes(time.Now())
			s.logCompaction(errors.Join(s.compactHistory(s.o.History), s.trimPast()))
		case <-hurry.C:
			if errors.Is(s.log.Condition(), changelog.ErrFull) {
				s.logCompaction(s.compactHistory(min(s.o.History, fullHistory)))
			}
		case <-s.compact.wake:
			s.logCompaction(s.sweepCut(s.Floor()))
		case r := <-s.compact.requests:
			if s.raw {
				r.done <- s.sweepCut(r.revision)
			} else {
				r.done <- s.compactTo(min(r.revision, s.Revision()))
			}
		case <-s.stop:
			return
		}
	}
}

// logCompaction logs when compaction begins to fail and when it works again.
func (s *Store) logCompaction(err error) {
	since := &s.compact.failed
	switch {
	case s.ctx.Err() != nil, errors.Is(err, changelog.ErrClosed):
	case err != nil && since.IsZero():
		*since = time.Now()
		s.o.Log.Warn("compaction fails, old versions stay; it is tried again", "err", err)
	case err == nil && !since.IsZero():
		s.o.Log.Info("compaction works again", "after", time.Since(*since))
		*since = time.Time{}
	}
}

// CompactionBehind returns for how long rows have stayed that are older than the history, because
// compaction fails, does not keep up, or somebody still reads them; 0: compaction is not behind.
func (s *Store) CompactionBehind() time.Duration { return s.compact.behind.now() }

// compactHistory compacts what is older than the history; a negative one is for ever.
func (s *Store) compactHistory(history time.Duration) error {
	if history < 0 {
		return nil
	}
	err := s.compactBefore(history)
	if err == nil && !s.belowHistory() {
		s.compact.behind.ends()
	}
	return err
}

// belowHistory says that rows are older than the history. The newest row always stays.
func (s *Store) belowHistory() bool { return s.Floor() < min(s.compact.target, s.Revision()-1) }

func (s *Store) compactBefore(history time.Duration) error {
	target, err := s.newestBefore(time.Now().Add(-history).UnixMilli())
	if err != nil {
		return fmt.Errorf("find the end of the history: %w", err)
	}
	if s.compact.target = target; s.belowHistory() {
		s.compact.behind.begins()
	}
	return s.compactTo(s.compact.unpinned(target))
}

// newestBefore returns the newest revision that was committed at or before a moment. It searches from
// where the last search ended.
func (s *Store) newestBefore(moment int64) (int64, error) {
	return s.newestIn(s.ctx, max(s.compact.target, s.Floor()), s.Revision(), moment)
}

// compactTo sweeps up to through, and makes that the floor.
func (s *Store) compactTo(through int64) error {
	deleted, err := s.sweepTo(through)
	if err != nil {
		return err
	}
	return s.reclaim(deleted)
}

// sweepCut deletes what has become superfluous by a floor that CutTo has set: everything below the
// compacted revision as compactTo does, and then what its own rows have superseded. Those themselves
// stay until the next cut, its tombstones too: a watch may start with them.
func (s *Store) sweepCut(floor int64) error {
	below := s.below(floor)
	deleted, err := s.sweepTo(below)
	if err != nil {
		return err
	}
	after, through := below, s.end(floor)
	superseded, err := s.inSteps(through, func() (c changelog.Compacted, err error) {
		c, err = s.log.Supersede(s.ctx, after, through, compactStep)
		after = c.Swept
		return c, err
	})
	if err != nil {
		return err
	}
	return s.reclaim(deleted + superseded)
}

func (s *Store) sweepTo(through int64) (deleted int64, err error) {
	return s.inSteps(through, func() (changelog.Compacted, error) {
		keep, limit := s.keepNow(), compactStep
		if keep != nil {
			limit = keepStep
		}
		return s.log.Compact(s.ctx, through, limit, keep)
	})
}

// inSteps repeats step until it has come to through, or gets no further. Between two steps
// writers get as much time as a step took.
func (s *Store) inSteps(through int64, step func() (changelog.Compacted, error)) (deleted int64, err error) {
	for swept := int64(-1); ; {
		begin := time.Now()
		c, err := step()
		if err != nil {
			return deleted, fmt.Errorf("compact up to %d: %w", through, err)
		}
		s.raiseFloor(c.Floor)
		deleted += c.Deleted
		s.stats.compactedDeleted.Add(c.Deleted)
		s.stats.kept.Add(c.Kept)
		if c.Busy || c.Swept >= through || c.Swept == swept {
			return deleted, nil
		}
		swept = c.Swept
		if s.pauseCompaction(time.Since(begin)) {
			return deleted, changelog.ErrClosed
		}
	}
}

// reclaim gives the space of deleted rows back, if there are any.
func (s *Store) reclaim(deleted int64) error {
	if deleted == 0 {
		return nil
	}
	if err := s.log.Reclaim(s.ctx); err != nil {
		return fmt.Errorf("reclaim space: %w", err)
	}
	return nil
}

// pauseCompaction says whether the Store is closing.
func (s *Store) pauseCompaction(d time.Duration) (closing bool) {
	t := time.NewTimer(min(max(d, time.Millisecond), busyPause))
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-s.stop:
		return true
	}
}

// raiseFloor notes that everything below floor is compacted, here or by another
// replica. It never exceeds what is applied: reads at the applied revision always work.
func (s *Store) raiseFloor(floor int64) {
	floor = min(floor, s.Revision())
	if s.state.raise(floor) {
		s.state.dropBelow(floor)
	}
}

func (st *state) raise(floor int64) (raised bool) {
	for old := st.floor.Load(); floor > old; old = st.floor.Load() {
		if st.floor.CompareAndSwap(old, floor) {
			return true
		}
	}
	return false
}
