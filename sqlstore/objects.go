package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// objects is the face of a Store for objects: it checks and submits changes, writes batches of them, and says what they
// have made.
type objects struct {
	*shared
	state    *state
	values   *values
	authors  *authors
	setBacks *setBacks
	commits  *committer
	compact  *compactor

	refused error // why nobody may use this face; nil: it is that of the Store
}

// Commit appends one change and returns the entry it made, when that is durable and
// visible to readers of this Store. Errors are a *ConflictError if the expectation does
// not hold; ErrKey; ErrTooLarge; ErrUnavailable if nothing was written, ErrFull among them;
// ErrUnknown if the outcome is not known, which is also so when ctx ends during the transaction;
// ErrClosed.
func (s *Store) Commit(ctx context.Context, c Change) (*Entry, error) {
	e, err := s.objects.commit(ctx, c)
	var conflict *ConflictError
	if s.state.bounded() && errors.As(err, &conflict) {
		conflict.Current = s.values.readable(conflict.Current)
	}
	return e, err
}

func (ob *objects) commit(ctx context.Context, c Change) (*Entry, error) {
	if err := ob.checkChange(&c); err != nil {
		return nil, err
	}
	if err := ob.checkRoom(ctx, &c); err != nil {
		return nil, err
	}
	if err := ob.values.transform(ctx, &c); err != nil {
		return nil, fmt.Errorf("commit %s: %w", c.Key, err)
	}
	c.origin = ob.authors.originOf(ctx)
	p := newPending(c)
	p.by = latest(ctx, c.MayWait, time.Now())
	if err := ob.commits.submit(p); err != nil {
		return nil, err
	}
	select {
	case <-p.done:
		return p.result()
	case <-ctx.Done():
		return ob.abandon(ctx, p)
	}
}

// abandon gives up waiting for p, unless it was answered meanwhile.
func (ob *objects) abandon(ctx context.Context, p *pending) (*Entry, error) {
	key := p.change.Key
	if err := ob.commits.abandoned(ctx, p); err != nil {
		return nil, fmt.Errorf("commit %s: %w", key, err)
	}
	return p.result()
}

// checkChange refuses what can be refused without the database.
func (ob *objects) checkChange(c *Change) error {
	if ob.refused != nil {
		return fmt.Errorf("commit %s: %w", c.Key, ob.refused)
	}
	// A key that nobody may write, and that is in the database, can be taken out of it.
	if err := ob.checkKey(c.Key); err != nil && !(c.Delete && ob.state.newest(c.Key) != nil) {
		return fmt.Errorf("commit: %w", err)
	}
	switch {
	case c.Delete && c.Expect == 0:
		return fmt.Errorf("commit %s: a delete must say what it deletes", c.Key)
	case len(c.Value) > ob.o.MaxValueBytes:
		return fmt.Errorf("commit %s of %d bytes: %w", c.Key, len(c.Value), ErrTooLarge)
	}
	return ob.checkExpect(c)
}

func (ob *objects) checkKey(key string) error {
	if len(key) > changelog.MaxKeyBytes {
		return fmt.Errorf("%w: it has %d bytes, and at most %d are possible", changelog.ErrKey, len(key), changelog.MaxKeyBytes)
	}
	return ob.o.Format.CheckKey(key)
}

// checkRoom refuses changes that take space when there is hardly any.
func (ob *objects) checkRoom(ctx context.Context, c *Change) error {
	err := ob.log.Condition()
	if !errors.Is(err, changelog.ErrFull) || ob.o.Format.Frees(c.Delete, c.Value) || isUrgent(ctx) {
		return nil
	}
	return fmt.Errorf("commit %s: nothing was written: %w", c.Key, err)
}

// checkExpect finds most conflicts without a transaction: revisions of a key only
// grow, so an expectation that the state has already gone past cannot hold in the log.
func (ob *objects) checkExpect(c *Change) error {
	if c.Expect == 0 {
		return nil // a delete may be on its way
	}
	ob.state.mu.RLock()
	current, applied := ob.state.get(c.Key), ob.state.applied.Load()
	ob.state.mu.RUnlock()
	if c.Expect > applied || current != nil && current.Revision == c.Expect {
		return nil
	}
	ob.stats.conflicts.Add(1)
	return &ConflictError{Key: c.Key, Expect: c.Expect, Current: current}
}

// End deletes the key of an entry, unless it has been changed or deleted since:
// then End does nothing. Errors are those of Commit without *ConflictError.
func (s *Store) End(ctx context.Context, e *Entry) error {
	_, err := s.Commit(ctx, e.Ends(s.values.hide(e)))
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		return nil
	}
	return err
}

// write appends the changes of b.
func (ob *objects) write(b *batch) (err error) {
	b.appended, err = ob.authors.boundedAppend(ob.o.AppendTimeout, b)
	return err
}

// prepare makes the entries of b's changes. Some may have been applied already: read from the log, when a hint was faster.
func (ob *objects) prepare(b *batch) {
	b.updates = b.updates[:0]
	applied, lost := ob.state.applied.Load(), ob.setBacks.mayBeLost(b)
	for i, r := range b.appended.Results {
		p := b.waiters[i]
		switch {
		case r.Revision > applied && !lost:
			p.entry = ob.entry(b, i)
			b.updates = append(b.updates, update{entry: p.entry, deleted: p.change.Delete})
		case r.Revision <= applied:
			p.entry = ob.present(b, i)
		}
	}
}

// present returns what the state has for b's i-th change: what it is in conflict with, or, if its row was applied, the
// entry that readers share if it is still current.
func (ob *objects) present(b *batch, i int) *Entry {
	e, revision := ob.state.newest(b.changes[i].Key), b.appended.Results[i].Revision
	switch {
	case revision == 0:
		return e
	case e == nil || e.isAway() || e.Revision != revision:
		return ob.entry(b, i)
	case !e.isSealed():
		return e
	}
	own := ob.entry(b, i) // its key was taken away meanwhile
	ob.values.swap(e, own)
	return own
}

func (ob *objects) answer(b *batch) {
	for i, r := range b.appended.Results {
		p := b.waiters[i]
		switch {
		case r.Revision == 0:
			ob.stats.conflicts.Add(1)
			c := &b.changes[i]
			p.answer(nil, &ConflictError{Key: c.Key, Expect: c.Expect, Current: p.entry})
		case ob.setBacks.mayBeLost(b):
			p.answer(nil, errMayBeLost)
		default:
			p.answer(p.entry, nil)
		}
	}
}

// entry makes the entry of b's i-th change.
func (ob *objects) entry(b *batch, i int) *Entry {
	c, r := &b.waiters[i].change, &b.appended.Results[i]
	return &Entry{
		Key:            c.Key,
		Revision:       r.Revision,
		CreateRevision: r.CreateRevision,
		At:             b.appended.At,
		Value:          ob.o.Format.Show(c.Value, r.Revision),
		form:           c.form,
	}
}

// newEntry makes the entry that readers of row see.
func (ob *objects) newEntry(row *changelog.Row) *Entry {
	return &Entry{
		Key:            row.Key,
		Revision:       row.Revision,
		CreateRevision: row.CreateRevision,
		At:             row.At,
		Value:          ob.o.Format.Show(row.Value, row.Revision),
	}
}

// compactTo makes a revision the floor, or the newest one.
func (ob *objects) compactTo(revision int64) error {
	return ob.compact.compactTo(min(revision, ob.state.applied.Load()))
}
