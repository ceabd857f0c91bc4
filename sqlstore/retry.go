package sqlstore

import (
	"context"
	"errors"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Retry runs try, a read-modify-write of key, until its commit meets no conflict, as
// upstream's GuaranteedUpdate does. The first run is given the entry in memory, which
// another process may have overtaken; each further run is given the entry that was in
// conflict with the one before.
//
// refused says of an error of try that it comes from looking at the entry. Such a refusal
// is returned only when the entry is the newest: Retry reads everything that was committed
// and, if the entry has changed, runs try again.
//
// try is given nil for an absent key; it commits by Store.Commit and returns its errors so
// that errors.As finds a *ConflictError.
func (s *Store) Retry(ctx context.Context, key string, refused func(error) bool, try func(current *Entry) error) error {
	current, sure := s.Get(key), false
	for {
		err := try(current)
		var conflict *ConflictError
		switch {
		case errors.As(err, &conflict):
			current, sure = conflict.Current, true
			continue
		case err == nil || sure || !refused(err):
			return err
		}
		if _, err := s.heads.sync(ctx); err != nil {
			return err
		}
		now := s.Get(key)
		if isSame(now, current) {
			return err
		}
		current, sure = now, true
	}
}

// isSame says that two readers were given the same. A value that left memory comes back in another Entry.
func isSame(a, b *Entry) bool {
	return a == b || a != nil && b != nil && a.Revision == b.Revision && (a.Unreadable() == nil) == (b.Unreadable() == nil)
}

// Confirm is for a write that changes nothing. It stores nothing and makes sure that
// current is still the newest entry of its key. Errors are those of Commit.
func (s *Store) Confirm(ctx context.Context, current *Entry) (*Entry, error) {
	if _, err := s.heads.sync(ctx); err != nil {
		return nil, err
	}
	if now := s.Get(current.Key); !isSame(now, current) {
		return nil, &ConflictError{Key: current.Key, Expect: current.Revision, Current: now}
	}
	return current, nil
}

// Refresh is Confirm, but for an object that would be stored in another way now: Refresh
// stores it anew.
func (s *Store) Refresh(ctx context.Context, current *Entry) (*Entry, error) {
	stale, err := s.Outdated(ctx, current)
	if err != nil {
		return nil, err
	}
	if !stale {
		return s.Confirm(ctx, current)
	}
	return s.Commit(ctx, Change{Key: current.Key, Expect: current.Revision, Value: s.values.hide(current)})
}

// Outdated tells whether Refresh would store e anew. It looks into the log only for a value that was transformed.
func (s *Store) Outdated(ctx context.Context, e *Entry) (bool, error) {
	t := s.o.Transformer
	switch {
	case t == nil:
		return false, nil
	case e.form == nil:
		stored, err := t.ToStorage(ctx, e.Key, []byte("{}"))
		if err != nil {
			return false, &Unreadable{e.Key, e.Revision, err}
		}
		return s.values.isTransformed(stored), nil
	}
	rows, err := s.log.State(ctx, e.Key, changelog.After(e.Key), e.Revision, 1)
	if err != nil || len(rows) == 0 || rows[0].Revision != e.Revision {
		return false, nil // Confirm finds out
	}
	_, stale, err := t.FromStorage(ctx, e.Key, rows[0].Value)
	return stale || err != nil, nil
}
