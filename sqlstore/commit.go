package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// Commit appends one change and returns the entry it made, when that is durable and
// visible to readers of this Store. Errors are a *ConflictError if the expectation does
// not hold; ErrKey; ErrTooLarge; ErrUnavailable if nothing was written; ErrUnknown if the outcome
// is not known, which is also so when ctx ends during the transaction; ErrClosed.
func (s *Store) Commit(ctx context.Context, c Change) (*Entry, error) {
	if err := s.checkChange(&c); err != nil {
		return nil, err
	}
	p := newPending(c)
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

// abandon gives up waiting for p.
func (s *Store) abandon(ctx context.Context, p *pending) (*Entry, error) {
	key := p.change.Key
	if s.commits.withdraw(p) {
		err := ctx.Err()
		if s.Healthy() != nil {
			err = lateIs(ctx, ErrUnavailable)
		}
		return nil, fmt.Errorf("commit %s: nothing was written: %w", key, err)
	}
	select {
	case <-p.done:
		return p.result()
	default:
		return nil, fmt.Errorf("commit %s: %w: %w", key, ErrUnknown, ctx.Err())
	}
}

// checkChange refuses what can be refused without the database.
func (s *Store) checkChange(c *Change) error {
	if err := checkKey(c.Key); err != nil {
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

// MaxValueBytes bounds the value of a change.
func (s *Store) MaxValueBytes() int { return s.o.MaxValueBytes }

func checkKey(key string) error {
	switch {
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("%w: it has %d bytes, and at most %d are possible", ErrKey, len(key), MaxKeyBytes)
	case ResourceOf(key) == "":
		return fmt.Errorf("%w: %q does not name a resource", ErrKey, key)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, isControl):
		return fmt.Errorf("%w: %q has control characters or is not UTF-8", ErrKey, key)
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

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

// pending is one change that somebody waits for.
type pending struct {
	change Change
	taken  bool          // guarded by committer.mu
	done   chan struct{} // has a token when entry and err are set
	entry  *Entry
	err    error
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
	p.change, p.taken, p.entry, p.err = Change{}, false, nil, nil
	pendings.Put(p)
	return entry, err
}

func (p *pending) answer(entry *Entry, err error) {
	p.entry, p.err = entry, err
	p.done <- struct{}{}
}
