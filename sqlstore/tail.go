package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
	"github.com/plinth-io/plinth/sqlstore/sleep"
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
	*shared
	state    *state
	values   *values
	hints    *hints
	pipe     *pipe
	lag      *lag
	witness  *witness
	health   *health
	loader   *loader
	setBacks *setBacks
	others   *Others
	face     face

	done chan struct{} // closed when the last batch is applied

	// owned by the tail's goroutine
	page    pages.Pager
	updates []update
	retry   time.Duration
}

func (t *tail) run() {
	defer close(t.done)
	var again <-chan time.Time
	for {
		select {
		case b, ok := <-t.pipe.appended:
			if !ok {
				return
			}
			t.applyBatch(b)
			continue
		case <-t.hints.wake:
			t.awaitOwn()
		case <-again:
		}
		again = t.follow()
	}
}

// awaitOwn lets a batch of this process arrive first if a hint may be about that batch:
// databases send a process hints of its own commits, too, and often before COMMIT returns.
func (t *tail) awaitOwn() {
	if t.state.applied.Load() >= t.hints.hint.Load() || !t.pipe.inFlight() {
		return
	}
	late := time.NewTimer(ownFirst)
	defer late.Stop()
	select {
	case b, ok := <-t.pipe.appended:
		if ok {
			t.applyBatch(b)
		}
	case <-late.C:
	}
}

// follow reads what other processes appended. It returns when to try again if that failed.
func (t *tail) follow() <-chan time.Time {
	hint := t.hints.hint.Load()
	if look := t.hints.look.Swap(false); !look && t.state.applied.Load() >= hint {
		return nil // a hint of a batch that came directly
	}
	err := t.catchUp(hint)
	t.health.read(err)
	if err == nil {
		t.retry = 0
		return nil
	}
	t.hints.look.Store(true)
	return time.After(t.backOff())
}

func (t *tail) backOff() time.Duration {
	t.retry = min(max(2*t.retry, retryFirst), retryMost)
	return t.retry
}

// applyBatch is step 6 of a commit: it brings the state to b's head, makes b visible, and has its callers answered. Then b
// can be used again. If the Store gives up before, b is durable all the same.
func (t *tail) applyBatch(b *batch) {
	reached := t.reachHead(b)
	for done := false; !done; {
		t.face.prepare(b)
		done = !reached || t.apply(b)
	}
	t.face.answer(b)
	put(t.others.wrote)
	b.reset()
	if b.keys != nil {
		t.pipe.free <- b
	}
}

// reachHead applies what other processes wrote before b; false if the Store gives up at Close. What b's transaction has
// found of that need not be read once more.
func (t *tail) reachHead(b *batch) bool {
	if len(b.found) > 0 && t.state.applied.Load() == b.known {
		_ = t.applyRows(b.found) // of what fails, reach gets the error
	}
	if !t.reach(b.appended.Head) {
		return false
	}
	t.state.raiseFloor(b.appended.Floor)
	return true
}

// apply makes b visible, or gives up at Close. It is false if the log could not be read, or the state was read anew
// because somebody has compacted what b replaced.
func (t *tail) apply(b *batch) (done bool) {
	prevs, err := t.readPrevs(b.updates)
	if err == nil {
		t.state.apply(b.updates, prevs)
		t.retry = 0
		return true
	}
	if errors.Is(err, changelog.ErrCompacted) {
		err = t.loadAnew()
	}
	t.health.read(err)
	if err != nil {
		_ = sleep.For(t.ctx, t.backOff())
	}
	return t.ctx.Err() != nil
}

// readPrevs returns what the keys of updates hold now, if values may leave memory: events have what was before.
func (t *tail) readPrevs(updates []update) (prevs []*Entry, err error) {
	prevs = t.state.prevs(updates)
	return prevs, t.values.fetch(t.ctx, prevs)
}

// reach reads the log until revision is applied, however long the database is away;
// false if the Store gives up at Close.
func (t *tail) reach(revision int64) bool {
	for t.state.applied.Load() < revision {
		before := t.state.applied.Load()
		err := t.catchUp(revision)
		t.health.read(err)
		if err != nil || t.state.applied.Load() == before {
			_ = sleep.For(t.ctx, t.backOff())
		}
		if t.ctx.Err() != nil {
			return false
		}
	}
	t.retry = 0
	return true
}

// catchUp brings the state to what the log has.
func (t *tail) catchUp(target int64) error {
	t.lag.begins()
	err := t.bringTo(target)
	if err == nil {
		t.lag.ends()
	}
	return err
}

func (t *tail) bringTo(target int64) error {
	if t.setBacks.back == nil {
		err := t.readOn(target)
		if !errors.Is(err, changelog.ErrSetBack) {
			return err
		}
	}
	return t.setBacks.goOnAbove()
}

// readOn reads rows from the log until there are no more. Then revision target, which was seen in
// the log, is applied, unless the database has lost it: InnoDB shows a commit to others before it is
// durable. Other rows will get its ids then, so that what was not read must not count as applied.
func (t *tail) readOn(target int64) error {
	for {
		limit, applied := t.page.Limit(), t.state.applied.Load()
		rows, err := t.boundedRows(applied, limit)
		if errors.Is(err, changelog.ErrCompacted) {
			return t.reload(applied, t.boundedHead)
		}
		if err != nil {
			return fmt.Errorf("catch up from revision %d: %w", t.shown(applied), err)
		}
		full := t.isFull(rows, limit)
		if rows = rows[:t.wholeRows(rows, full)]; full && len(rows) == 0 {
			t.page.Grow() // a revision is larger than the page
			continue
		}
		if t.mayLackRows() || !t.complete(rows, applied, target, full) {
			if reloaded, err := t.reloadIfSwept(applied); reloaded || err != nil {
				return err
			}
		}
		if err := t.applyRows(rows); errors.Is(err, changelog.ErrCompacted) {
			return t.reload(applied, t.boundedHead)
		} else if err != nil {
			return fmt.Errorf("catch up from revision %d: %w", t.shown(applied), err)
		}
		t.page.Read(len(rows), pages.Bytes(rows))
		switch {
		case full: // there may be more
		case t.end(t.state.applied.Load()) < target:
			t.hints.forget(target)
			return nil
		default:
			t.state.advance(target)
			return nil
		}
	}
}

// wholeRows returns how many rows of a page can be applied: not a part of a revision, which
// becomes visible at once.
func (t *tail) wholeRows(rows []changelog.Row, full bool) int {
	if !full {
		return len(rows)
	}
	return t.whole(len(rows), func(i int) int64 { return rows[i].Revision })
}

// mayLackRows says that another process may have swept rows of which nothing tells that they are missing.
func (t *tail) mayLackRows() bool { return t.hideGaps() && !t.log.Exclusive() }

// complete says that no revision is missing between applied and the last row of a
// page, nor up to target if it is the last page.
func (t *tail) complete(rows []changelog.Row, applied, target int64, full bool) bool {
	last := applied
	for i := range rows {
		if !t.follows(last, rows[i].Revision) {
			return false
		}
		last = rows[i].Revision
	}
	return full || t.end(last) >= target
}

// reloadIfSwept reads the state anew if rows after applied may have been compacted
// away: a replica that was cut off for longer than the history cannot know what was
// deleted in the meantime. The floor is read after the rows: if it permits them, none was
// missing when they were read.
func (t *tail) reloadIfSwept(applied int64) (reloaded bool, err error) {
	head, err := t.boundedHead()
	if err != nil {
		return false, err
	}
	if head.Floor <= t.end(applied) {
		t.state.raiseFloor(head.Floor)
		return false, nil
	}
	return true, t.reload(applied, func() (changelog.Head, error) { return head, nil })
}

// reload reads the state anew because rows after applied, or the row itself, were compacted away: a
// replica was cut off for long, or another one has found the database set back, and raised the floor.
func (t *tail) reload(applied int64, readHead func() (changelog.Head, error)) error {
	head, err := readHead()
	if err != nil {
		return err
	}
	above, err := t.setBacks.raisedAbove(applied)
	if err != nil {
		return fmt.Errorf("read whether the database was set back: %w", err)
	}
	if above > 0 {
		t.setBacks.back = &goingBack{served: t.witness.served(), above: above, told: true}
		return t.setBacks.goOnAbove()
	}
	t.o.Log.Warn("the database was compacted beyond what this server has read; reading the state anew", "floor", t.shown(head.Floor), "revision", t.shown(applied))
	return t.loadAnew()
}

func (t *tail) applyRows(rows []changelog.Row) error {
	ctx, cancel := context.WithTimeout(t.ctx, pageTransform)
	defer cancel()
	updates := t.updates[:0]
	for i := range rows {
		updates = append(updates, update{entry: t.values.open(ctx, &rows[i]), deleted: rows[i].Deleted})
	}
	prevs, err := t.readPrevs(updates)
	if err == nil {
		t.state.apply(updates, prevs)
		t.values.tellUpdates(updates)
		if n := len(rows); n > 0 {
			t.witness.saw(rows[n-1].Revision, rows[n-1].At)
		}
	}
	clear(updates)
	t.updates = updates[:0]
	return err
}

// loadAnew is load for a log that was opened long ago, and may be another one by now.
func (t *tail) loadAnew() error {
	if err := t.setBacks.checkCluster(t.ctx); err != nil {
		return err
	}
	return t.loader.load(t.ctx)
}
