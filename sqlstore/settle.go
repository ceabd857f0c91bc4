package sqlstore

import (
	"context"
	"errors"
)

// Settle tries a write of key until nobody else was faster. It starts from memory, which
// another process may have overtaken: then the commit's expectation fails and it starts
// again from what is there. A refusal, an error of which refused says that it comes from
// looking at the entry, is made sure of before it is given: the entry is looked at again
// when reads see everything that was committed.
//
// try is given the current entry, nil for an absent key; it commits by Store.Commit and
// returns its errors so that errors.As finds a *ConflictError.
func (s *Store) Settle(ctx context.Context, key string, refused func(error) bool, try func(current *Entry) error) error {
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
		if _, err := s.Sync(ctx); err != nil {
			return err
		}
		now := s.Get(key)
		if now == current {
			return err
		}
		current, sure = now, true
	}
}

// Confirm is for a write that changes nothing: nothing is stored, but that current still is
// the newest has to be true. Errors as of Commit.
func (s *Store) Confirm(ctx context.Context, current *Entry) (*Entry, error) {
	if _, err := s.Sync(ctx); err != nil {
		return nil, err
	}
	if now := s.Get(current.Key); now != current {
		return nil, &ConflictError{Key: current.Key, Expect: current.Revision, Current: now}
	}
	return current, nil
}

// Tombstone is the change that ends an object, with current as its last state.
func Tombstone(current *Entry) Change {
	return Change{Key: current.Key, Expect: current.Revision, Delete: true, Value: Unsplice(current)}
}

// End ends the object of an entry, unless it has been changed or ended since: then that is
// all there is to do. Other errors as of Commit.
func (s *Store) End(ctx context.Context, e *Entry) error {
	_, err := s.Commit(ctx, Tombstone(e))
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		return nil
	}
	return err
}
