package sqlstore

import (
	"context"
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

// Ends returns the change that deletes the key of e, with last as its last state. The stored
// form of an unreadable entry stays as it is.
func (e *Entry) Ends(last []byte) Change {
	c := Change{Key: e.Key, Expect: e.Revision, Delete: true, Value: last}
	if e.Unreadable() != nil {
		c.Value, c.stored, c.form = nil, e.form.sealed.stored, e.form
	}
	return c
}
