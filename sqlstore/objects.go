package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// objects is the face of a Store for objects: it checks and submits changes, writes batches of them, and applies them.
type objects struct {
	*shared
	state    *state
	values   *values
	authors  *authors
	setBacks *setBacks
	tail     *tail
	health   *health
	commits  *committer
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
	if err := ob.values.seal(ctx, &c); err != nil {
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

// apply brings the state to b's head, then applies b and answers its callers.
func (ob *objects) apply(b *batch) (wrote bool) {
	if !ob.tail.reach(b.appended.Head) {
		ob.answer(b) // the Store is closing; the batch is durable all the same
		return false
	}
	ob.state.raiseFloor(b.appended.Floor)
	ob.applyOwn(b)
	return true
}

func (ob *objects) applyOwn(b *batch) {
	updates := ob.ownUpdates(b)
	for err := ob.values.readPrevs(updates); err != nil; err = ob.values.readPrevs(updates) {
		if errors.Is(err, changelog.ErrCompacted) {
			err = ob.tail.loadAnew() // somebody has compacted what this batch replaced
		}
		ob.health.read(err)
		if err != nil {
			_ = sleep.For(ob.ctx, ob.tail.backOff())
		}
		if ob.ctx.Err() != nil {
			break // the batch is durable all the same
		}
		updates = ob.ownUpdates(b)
	}
	if ob.ctx.Err() == nil {
		ob.state.apply(updates)
	}
	ob.tail.retry = 0
	ob.answer(b)
	clear(updates)
	ob.tail.updates = updates[:0]
}

// ownUpdates returns what of b is to be applied. Some may have been applied already.
func (ob *objects) ownUpdates(b *batch) []update {
	applied := ob.state.applied.Load()
	updates := ob.tail.updates[:0]
	for i, r := range b.appended.Results {
		p := b.waiters[i]
		if r.Revision == 0 || ob.setBacks.mayBeLost(b) {
			continue
		}
		if r.Revision <= applied { // read from the log, when a hint was faster
			p.entry = ob.applied(b, i)
			continue
		}
		p.entry = ob.entry(b, i)
		updates = append(updates, update{entry: p.entry, deleted: p.change.Delete})
	}
	return updates
}

// applied returns the entry of b's i-th change when its row has been applied: the one
// that readers share if it is still current.
func (ob *objects) applied(b *batch, i int) *Entry {
	e := ob.state.newest(b.changes[i].Key)
	switch {
	case e == nil || e.isAway() || e.Revision != b.appended.Results[i].Revision:
		return ob.entry(b, i)
	case e.Unreadable() == nil:
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
			p.answer(nil, &ConflictError{Key: c.Key, Expect: c.Expect, Current: ob.state.newest(c.Key)})
		case ob.setBacks.mayBeLost(b):
			p.answer(nil, errMayBeLost)
		case p.entry == nil:
			p.answer(ob.entry(b, i), nil)
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
