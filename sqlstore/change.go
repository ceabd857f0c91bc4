package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Change is one requested row.
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

	// Set by Commit and the committer: see WithOrigin.
	origin *Origin
	author int64
	audit  []byte
}

// Author and AuditID are what the row of c says of its origin; 0 and nil if it says nothing.
func (c *Change) Author() int64   { return c.author }
func (c *Change) AuditID() []byte { return c.audit }

// holds says whether c may be written when the newest row of its key has revision found
// (0 if there is no row) and is a tombstone or not.
func (c *Change) holds(found int64, deleted bool) bool {
	if deleted {
		found = 0
	}
	return c.Expect == found && !(c.Delete && c.Expect == 0)
}

// Result is what became of one change of a batch.
type Result struct {
	// Revision is the new row's revision, 0 if the expectation failed.
	Revision       int64
	CreateRevision int64 // of the new row
	// Found is the revision of the key's newest row when the expectation failed; 0 if
	// the key has no row. FoundDeleted says that it is a tombstone.
	Found        int64
	FoundDeleted bool
}

// Appended describes a batch that was committed (or had nothing to commit).
type Appended struct {
	Head    int64    // newest revision found under the write lock, before this batch
	Floor   int64    // compacted revision found under the write lock
	At      int64    // commit time written to the new rows, Unix milliseconds
	Results []Result // one for each change, in order
}

// Judge decides which changes of a batch hold, gives those the next revisions in order of
// the batch, and appends the rows to insert to rows, which may be nil. Dialects call it under
// the write lock, when they have read Head and At, and the newest row of each change's key
// into its Result (Found, FoundDeleted and CreateRevision, zeros if there is none). Judge
// turns these into the results that Append returns.
func (a *Appended) Judge(batch []Change, rows []Row) []Row {
	rows = slices.Grow(rows, len(batch))
	before := len(rows)
	for i := range batch {
		c, r := &batch[i], &a.Results[i]
		if !c.holds(r.Found, r.FoundDeleted) {
			r.CreateRevision = 0
			continue
		}
		next := a.Head + 1 + int64(len(rows)-before)
		if c.Expect == 0 {
			r.CreateRevision = next
		}
		r.Revision, r.Found, r.FoundDeleted = next, 0, false
		rows = append(rows, Row{Revision: next, Key: c.Key, CreateRevision: r.CreateRevision, Deleted: c.Delete, At: a.At, Value: c.StoredValue(), Author: c.author, AuditID: c.audit})
	}
	return rows
}

type urgentKey struct{}

// Urgent returns a context with which Commit does not refuse with ErrFull: for the few
// changes that tell of the full disk.
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

func isUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// checkChange refuses what can be refused without the database.
func (s *Store) checkChange(c *Change) error {
	if s.raw {
		return fmt.Errorf("commit %s: %w: raw keys are written by transactions", c.Key, ErrKind)
	}
	// A key that nobody may write, and that is in the database, can be taken out of it.
	if err := s.checkKey(c.Key); err != nil && !(c.Delete && s.Get(c.Key) != nil) {
		return fmt.Errorf("commit: %w", err)
	}
	switch {
	case c.Delete && c.Expect == 0:
		return fmt.Errorf("commit %s: a delete must say what it deletes", c.Key)
	case len(c.Value) > s.o.MaxValueBytes:
		return fmt.Errorf("commit %s of %d bytes: %w", c.Key, len(c.Value), ErrTooLarge)
	}
	return s.checkExpect(c)
}

// checkRoom refuses changes that take space when there is hardly any.
func (s *Store) checkRoom(ctx context.Context, c *Change) error {
	err := s.log.Condition()
	if !errors.Is(err, ErrFull) || s.o.Format.Frees(c.Delete, c.Value) || isUrgent(ctx) {
		return nil
	}
	return fmt.Errorf("commit %s: nothing was written: %w", c.Key, err)
}

// MaxValueBytes bounds the value of a change.
func (s *Store) MaxValueBytes() int { return s.o.MaxValueBytes }

// checkExpect finds most conflicts without a transaction: revisions of a key only
// grow, so an expectation that the state has already gone past cannot hold in the log.
func (s *Store) checkExpect(c *Change) error {
	if c.Expect == 0 {
		return nil // a delete may be on its way
	}
	s.state.mu.RLock()
	current, applied := s.state.get(c.Key), s.state.applied.Load()
	s.state.mu.RUnlock()
	if c.Expect > applied || current != nil && current.Revision == c.Expect {
		return nil
	}
	s.stats.conflicts.Add(1)
	return &ConflictError{Key: c.Key, Expect: c.Expect, Current: current}
}
