package sqlstore

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
	ownFirst   = 5 * time.Millisecond
)

// tail follows the log in order and is the only writer of the state. Batches of this
// process come to it directly; Appended.Head says whether something came between, and
// then it reads the log, as it does for changes of other processes.
type tail struct {
	commits chan *batch   // closed by the committer at its end
	wake    chan struct{} // has a token when hint or look changed
	hint    atomic.Int64  // newest revision that a hint told
	look    atomic.Bool   // there may be rows beyond hint
	done    chan struct{} // closed when the last batch is applied

	// owned by the tail's goroutine
	page    pages.Pager
	updates []update
	retry   time.Duration
	back    *goingBack // while the database is known to be set back and the state is still that of before
	above   int64      // what was written up to here may be lost, because the database was set back
}

func (t *tail) init() {
	t.commits = make(chan *batch, 1)
	t.wake = make(chan struct{}, 1)
	t.done = make(chan struct{})
}

// Revision returns the newest revision that reads see.
func (s *Store) Revision() int64 { return s.state.applied.Load() }

// Floor returns the compacted revision as far as this Store knows it.
func (s *Store) Floor() int64 { return s.state.floor.Load() }

// lookFor makes the tail look into the log for rows up to head, or for any if it is 0.
func (t *tail) lookFor(head int64) {
	if head == 0 {
		t.look.Store(true)
	}
	for old := t.hint.Load(); head > old; old = t.hint.Load() {
		if t.hint.CompareAndSwap(old, head) {
			break
		}
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// forget takes back a hint at a revision that the database has lost. A hint at one that is there after
// all comes again with the next head.
func (t *tail) forget(target int64) { t.hint.CompareAndSwap(target, 0) }

func (s *Store) runTail() {
	defer close(s.tail.done)
	var again <-chan time.Time
	for {
		select {
		case b, ok := <-s.tail.commits:
			if !ok {
				return
			}
			s.applyBatch(b)
			continue
		case <-s.tail.wake:
			s.awaitOwn()
		case <-again:
		}
		again = s.follow()
	}
}

// awaitOwn lets a batch of this process arrive first if a hint may be about that batch:
// databases send a process hints of its own commits, too, and often before COMMIT returns.
func (s *Store) awaitOwn() {
	if s.Revision() >= s.tail.hint.Load() || !s.commits.inFlight() {
		return
	}
	late := time.NewTimer(ownFirst)
	defer late.Stop()
	select {
	case b, ok := <-s.tail.commits:
		if ok {
			s.applyBatch(b)
		}
	case <-late.C:
	}
}

// follow reads what other processes appended. It returns when to try again if that failed.
func (s *Store) follow() <-chan time.Time {
	hint := s.tail.hint.Load()
	if look := s.tail.look.Swap(false); !look && s.Revision() >= hint {
		return nil // a hint of a batch that came directly
	}
	err := s.catchUp(hint)
	s.health.read(err)
	if err == nil {
		s.tail.retry = 0
		return nil
	}
	s.tail.look.Store(true)
	return time.After(s.tail.backOff())
}

func (t *tail) backOff() time.Duration {
	t.retry = min(max(2*t.retry, retryFirst), retryMost)
	return t.retry
}

// applyBatch brings the state to b's head, then applies b and answers its callers.
func (s *Store) applyBatch(b *batch) {
	if s.raw {
		s.applyTransactions(b)
		put(s.others.wrote)
	} else if s.reach(b.appended.Head) {
		s.raiseFloor(b.appended.Floor)
		s.applyOwn(b)
		put(s.others.wrote)
	} else {
		s.answer(b) // the Store is closing; the batch is durable all the same
	}
	b.reset()
	if b.keys != nil {
		s.commits.done <- b
	}
}

// reach reads the log until revision is applied, however long the database is away;
// false if the Store gives up at Close.
func (s *Store) reach(revision int64) bool {
	for s.Revision() < revision {
		before := s.Revision()
		err := s.catchUp(revision)
		s.health.read(err)
		if err != nil || s.Revision() == before {
			s.pause(s.tail.backOff())
		}
		if s.ctx.Err() != nil {
			return false
		}
	}
	s.tail.retry = 0
	return true
}

func (s *Store) applyOwn(b *batch) {
	updates := s.ownUpdates(b)
	for err := s.readPrevs(updates); err != nil; err = s.readPrevs(updates) {
		if errors.Is(err, changelog.ErrCompacted) {
			err = s.loadAnew() // somebody has compacted what this batch replaced
		}
		s.health.read(err)
		if err != nil {
			s.pause(s.tail.backOff())
		}
		if s.ctx.Err() != nil {
			break // the batch is durable all the same
		}
		updates = s.ownUpdates(b)
	}
	if s.ctx.Err() == nil {
		s.state.apply(updates)
	}
	s.tail.retry = 0
	s.answer(b)
	clear(updates)
	s.tail.updates = updates[:0]
}

// ownUpdates returns what of b is to be applied. Some may have been applied already.
func (s *Store) ownUpdates(b *batch) []update {
	applied := s.Revision()
	updates := s.tail.updates[:0]
	for i, r := range b.appended.Results {
		p := b.waiters[i]
		if r.Revision == 0 || s.mayBeLost(b) {
			continue
		}
		if r.Revision <= applied { // read from the log, when a hint was faster
			p.entry = s.applied(b, i)
			continue
		}
		p.entry = s.entry(b, i)
		updates = append(updates, update{entry: p.entry, deleted: p.change.Delete})
	}
	return updates
}

// applied returns the entry of b's i-th change when its row has been applied: the one
// that readers share if it is still current.
func (s *Store) applied(b *batch, i int) *Entry {
	e := s.current(b.changes[i].Key)
	switch {
	case e == nil || e.isAway() || e.Revision != b.appended.Results[i].Revision:
		return s.entry(b, i)
	case e.Unreadable() == nil:
		return e
	}
	own := s.entry(b, i) // its key was taken away meanwhile
	s.swap(e, own)
	return own
}

func (s *Store) answer(b *batch) {
	for i, r := range b.appended.Results {
		p := b.waiters[i]
		switch {
		case r.Revision == 0:
			s.stats.conflicts.Add(1)
			c := &b.changes[i]
			p.answer(nil, &ConflictError{Key: c.Key, Expect: c.Expect, Current: s.current(c.Key)})
		case s.mayBeLost(b):
			p.answer(nil, errMayBeLost)
		case p.entry == nil:
			p.answer(s.entry(b, i), nil)
		default:
			p.answer(p.entry, nil)
		}
	}
}

// pause waits for d or for the Store to give up.
func (s *Store) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}
