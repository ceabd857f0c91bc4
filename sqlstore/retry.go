package sqlstore

import (
	"context"
	"errors"
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
