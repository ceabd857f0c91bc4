package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
)

// tail follows the log in order and is the only writer of the state. Batches of this
// process come to it directly; Appended.Head says whether something came between, and
// then it reads the log, as it does for changes of other processes.
type tail struct {
	commits chan *batch   // closed by the committer at its end
	nudged  chan struct{} // has a token when hint may have grown
	hint    atomic.Int64  // newest revision heard of
	done    chan struct{} // closed when the last batch is applied

	// owned by the tail's goroutine
	page  pager
	puts  []put
	retry time.Duration
}

func (t *tail) init() {
	t.commits = make(chan *batch, 1)
	t.nudged = make(chan struct{}, 1)
	t.done = make(chan struct{})
}

// Revision returns the newest revision that reads see.
func (s *Store) Revision() int64 { return s.state.applied.Load() }

// Floor returns the compacted revision as far as this Store has heard of it.
func (s *Store) Floor() int64 { return s.state.floor.Load() }

// nudge makes the tail look into the log for rows up to head, or for any if it is 0.
func (t *tail) nudge(head int64) {
	for old := t.hint.Load(); head > old; old = t.hint.Load() {
		if t.hint.CompareAndSwap(old, head) {
			break
		}
	}
	select {
	case t.nudged <- struct{}{}:
	default:
	}
}

func (s *Store) runFollow() { s.log.Follow(s.ctx, s.tail.nudge) }

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
		case <-s.tail.nudged:
		case <-again:
		}
		again = s.follow()
	}
}

// follow reads what others appended, and returns when to try again if that failed.
func (s *Store) follow() <-chan time.Time {
	err := s.catchUp(s.tail.hint.Load())
	s.health.read(err)
	if err == nil {
		s.tail.retry = 0
		return nil
	}
	return time.After(s.tail.backOff())
}

func (t *tail) backOff() time.Duration {
	t.retry = min(max(2*t.retry, retryFirst), retryMost)
	return t.retry
}

// applyBatch brings the state to b's head, then applies b and answers its callers.
func (s *Store) applyBatch(b *batch) {
	if s.reach(b.appended.Head) {
		s.raiseFloor(b.appended.Floor)
		s.applyOwn(b)
	} else {
		s.answer(b) // closing; durable all the same
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
		err := s.catchUp(revision)
		s.health.read(err)
		if err != nil {
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
	applied := s.Revision()
	puts := s.tail.puts[:0]
	for i, r := range b.appended.Results {
		p := b.waiters[i]
		if r.Revision == 0 {
			continue
		}
		p.entry = b.entry(i)
		// The tail may have read the rows already, when a hint was faster.
		if r.Revision > applied {
			puts = append(puts, put{p.entry, p.change.Delete})
		}
	}
	s.state.apply(puts)
	s.answer(b)
	clear(puts)
	s.tail.puts = puts[:0]
}

// entry makes the entry of b's i-th change.
func (b *batch) entry(i int) *Entry {
	c, r := &b.changes[i], &b.appended.Results[i]
	return &Entry{
		Key:            c.Key,
		Revision:       r.Revision,
		CreateRevision: r.CreateRevision,
		At:             b.appended.At,
		JSON:           Splice(c.Value, r.Revision),
	}
}

func (s *Store) answer(b *batch) {
	for i, r := range b.appended.Results {
		p := b.waiters[i]
		switch {
		case r.Revision == 0:
			s.stats.conflicts.Add(1)
			c := &b.changes[i]
			p.answer(nil, &ConflictError{Key: c.Key, Expect: c.Expect, Current: s.Get(c.Key)})
		case p.entry == nil:
			p.answer(b.entry(i), nil)
		default:
			p.answer(p.entry, nil)
		}
	}
}

// catchUp reads rows from the log until there are no more and at least revision
// target, which is known to be committed, is applied.
func (s *Store) catchUp(target int64) error {
	for {
		limit, applied := s.tail.page.limit(), s.Revision()
		rows, err := s.log.Rows(s.ctx, applied, limit)
		if err != nil {
			return fmt.Errorf("read rows after %d: %w", applied, err)
		}
		if !complete(rows, applied, target, limit) {
			if reloaded, err := s.reloadIfSwept(applied); reloaded || err != nil {
				return err
			}
		}
		s.applyRows(rows)
		s.tail.page.read(len(rows), sizeOf(rows))
		if len(rows) < limit {
			s.state.advance(target)
			return nil
		}
	}
}

// complete says that no revision is missing between applied and the last row of a
// page, nor up to target if it is the last page.
func complete(rows []Row, applied, target int64, limit int) bool {
	n := len(rows)
	last := applied + int64(n)
	if n < limit && last < target {
		return false
	}
	return n == 0 || rows[n-1].Revision == last
}

// reloadIfSwept reads the state anew if rows after applied may have been compacted
// away: a replica that was cut off for longer than the history cannot know what was
// deleted in the meantime. The floor is read after the rows, so rows that are judged
// complete are.
func (s *Store) reloadIfSwept(applied int64) (reloaded bool, err error) {
	head, err := s.log.Head(s.ctx)
	if err != nil {
		return false, fmt.Errorf("read head: %w", err)
	}
	if head.Floor <= applied {
		s.raiseFloor(head.Floor)
		return false, nil
	}
	s.o.Logf("the log was compacted up to %d, beyond what was read up to %d; reading the state anew", head.Floor, applied)
	return true, s.load(s.ctx)
}

func (s *Store) applyRows(rows []Row) {
	puts := s.tail.puts[:0]
	for i := range rows {
		puts = append(puts, put{NewEntry(&rows[i]), rows[i].Deleted})
	}
	s.state.apply(puts)
	clear(puts)
	s.tail.puts = puts[:0]
}

// load reads the whole state at the head and puts it in the place of what is there.
func (s *Store) load(ctx context.Context) error {
	for {
		head, err := s.log.Head(ctx)
		if err != nil {
			return fmt.Errorf("read head: %w", err)
		}
		loaded, err := s.readState(ctx, head.Revision)
		if errors.Is(err, ErrCompacted) {
			continue // the floor has passed the head just read
		}
		if err != nil {
			return fmt.Errorf("read state at %d: %w", head.Revision, err)
		}
		s.state.replace(loaded, head.Revision)
		s.raiseFloor(head.Floor)
		return nil
	}
}

func (s *Store) readState(ctx context.Context, revision int64) (map[string]*entryMap, error) {
	from, to := RangeOf("/registry/")
	next := func(from string, limit int) ([]Row, error) {
		return s.log.State(ctx, from, to, revision, limit)
	}
	loaded := make(map[string]*entryMap)
	for rows, err := range pagesOf(from, next) {
		if err != nil {
			return nil, err
		}
		for i := range rows {
			name := ResourceOf(rows[i].Key)
			if loaded[name] == nil {
				loaded[name] = new(entryMap)
			}
			loaded[name].Set(rows[i].Key, s.entryOf(&rows[i]))
		}
	}
	return loaded, nil
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
