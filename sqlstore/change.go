package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Change is a write that somebody asks the Store for.
type Change struct {
	Key string
	// Expect is the revision of the row that this change replaces. 0 expects that the
	// key is absent: never written, or its newest row is a tombstone.
	Expect int64
	Delete bool   // append a tombstone; Expect must not be 0
	Value  []byte // what the key holds from now on, or its last state for a tombstone
	// MayWait is how long the change may wait for others to share its transaction. Commit takes
	// longer by that at most, and what it acknowledges is durable as ever. 0: it does not wait.
	MayWait time.Duration

	// Set by Commit and Tombstone, if the log holds something else than Value.
	stored []byte
	form   *form

	// Set by Commit: see WithOrigin.
	origin *changelog.Origin
}

// logged returns what the log is asked for. Who makes the change is not known yet.
func (w *Change) logged() changelog.Change {
	c := changelog.Change{Key: w.Key, Expect: w.Expect, Delete: w.Delete, Value: w.Value}
	if w.stored != nil {
		c.Value = w.stored
	}
	return c
}

type urgentKey struct{}

// Urgent returns a context with which Commit does not refuse with ErrFull: for the few
// changes that tell of the full disk.
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

func isUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

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

// MaxValueBytes bounds the value of a change.
func (s *Store) MaxValueBytes() int { return s.o.MaxValueBytes }

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

// Ends returns the change that deletes the key of e, with last as its last state. The stored
// form of an unreadable entry stays as it is.
func (e *Entry) Ends(last []byte) Change {
	c := Change{Key: e.Key, Expect: e.Revision, Delete: true, Value: last}
	if e.Unreadable() != nil {
		c.Value, c.stored, c.form = nil, e.form.sealed.stored, e.form
	}
	return c
}
