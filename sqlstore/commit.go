package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Commit appends one change and returns the entry it made, when that is durable and
// visible to readers of this Store. Errors are a *ConflictError if the expectation does
// not hold; ErrKey; ErrTooLarge; ErrUnavailable if nothing was written, ErrFull among them;
// ErrUnknown if the outcome is not known, which is also so when ctx ends during the transaction;
// ErrClosed.
func (s *Store) Commit(ctx context.Context, c Change) (*Entry, error) {
	e, err := s.commit(ctx, c)
	var conflict *ConflictError
	if s.bounded() && errors.As(err, &conflict) {
		conflict.Current = s.readable(conflict.Current)
	}
	return e, err
}

func (s *Store) commit(ctx context.Context, c Change) (*Entry, error) {
	if err := s.checkChange(&c); err != nil {
		return nil, err
	}
	if err := s.checkRoom(ctx, &c); err != nil {
		return nil, err
	}
	if err := s.seal(ctx, &c); err != nil {
		return nil, fmt.Errorf("commit %s: %w", c.Key, err)
	}
	c.origin = s.originOf(ctx)
	p := newPending(c)
	p.by = latest(ctx, c.MayWait, time.Now())
	if err := s.commits.submit(p); err != nil {
		return nil, err
	}
	select {
	case <-p.done:
		return p.result()
	case <-ctx.Done():
		return s.abandon(ctx, p)
	}
}

// abandon gives up waiting for p, unless it was answered meanwhile.
func (s *Store) abandon(ctx context.Context, p *pending) (*Entry, error) {
	key := p.change.Key
	if err := s.abandoned(ctx, p); err != nil {
		return nil, fmt.Errorf("commit %s: %w", key, err)
	}
	return p.result()
}

// abandoned returns the error of a caller that gives up waiting for p, nil if p was answered
// meanwhile.
func (s *Store) abandoned(ctx context.Context, p *pending) error {
	if s.commits.withdraw(p) {
		err := ctx.Err()
		if s.Healthy() != nil {
			err = deadlineError(ctx, changelog.ErrUnavailable)
		}
		return fmt.Errorf("nothing was written: %w", err)
	}
	select {
	case <-p.done:
		return nil
	default:
		return fmt.Errorf("%w: %w", changelog.ErrUnknown, ctx.Err())
	}
}

// End deletes the key of an entry, unless it has been changed or deleted since:
// then End does nothing. Errors are those of Commit without *ConflictError.
func (s *Store) End(ctx context.Context, e *Entry) error {
	_, err := s.Commit(ctx, e.Ends(s.hide(e)))
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		return nil
	}
	return err
}

// pending is one change, or one transaction on raw keys, whose caller waits.
type pending struct {
	change Change
	by     time.Time // when its transaction is to begin at the latest; zero: at once

	transaction *Transaction
	pinned      map[int64][]byte // values that it needs
	outcome     Outcome

	taken bool          // guarded by committer.mu
	done  chan struct{} // has a token when entry and err are set
	entry *Entry
	err   error
}

var pendings = sync.Pool{New: func() any { return &pending{done: make(chan struct{}, 1)} }}

func newPending(c Change) *pending {
	p := pendings.Get().(*pending)
	p.change = c
	return p
}

// result takes the outcome out of p and gives p back for use by another commit. A
// pending that is abandoned is not given back, since it will still be answered.
func (p *pending) result() (*Entry, error) {
	entry, err := p.entry, p.err
	*p = pending{done: p.done}
	pendings.Put(p)
	return entry, err
}

func (p *pending) answer(entry *Entry, err error) {
	p.entry, p.err = entry, err
	p.done <- struct{}{}
}
