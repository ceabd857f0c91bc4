package sqlstore

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// waiter is a call of Wait.
type waiter struct {
	revision int64
	done     chan struct{}
}

// Wait returns when reads see revision. ErrFuture if ctx ends before.
func (s *Store) Wait(ctx context.Context, revision int64) error { return s.state.wait(ctx, revision) }

func (st *state) wait(ctx context.Context, revision int64) error {
	w, err := st.waiter(revision)
	if w == nil || err != nil {
		return err
	}
	select {
	case <-w.done:
		return st.reached(revision)
	case <-ctx.Done():
		st.drop(w)
		return fmt.Errorf("wait for revision %d: %w: %w", revision, ErrFuture, ctx.Err())
	}
}

// waiter returns nil if revision is applied already.
func (st *state) waiter(revision int64) (*waiter, error) {
	if st.applied.Load() >= revision {
		return nil, nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return nil, changelog.ErrClosed
	}
	if st.applied.Load() >= revision {
		return nil, nil
	}
	w := &waiter{revision, make(chan struct{})}
	st.waiters = append(st.waiters, w)
	return w, nil
}

func (st *state) reached(revision int64) error {
	if st.applied.Load() < revision {
		return changelog.ErrClosed
	}
	return nil
}

func (st *state) drop(w *waiter) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, x := range st.waiters {
		if x == w {
			st.waiters = append(st.waiters[:i], st.waiters[i+1:]...)
			return
		}
	}
}

// takeReady removes and returns the waiters that revision is enough for. mu is held.
func (st *state) takeReady(revision int64) (ready []*waiter) {
	if len(st.waiters) == 0 {
		return nil
	}
	rest := st.waiters[:0]
	for _, w := range st.waiters {
		if w.revision <= revision {
			ready = append(ready, w)
		} else {
			rest = append(rest, w)
		}
	}
	clear(st.waiters[len(rest):])
	st.waiters = rest
	return ready
}

// close ends watchers and waiters. Reads of the state go on.
func (st *state) close() {
	st.mu.Lock()
	st.closed = true
	for _, r := range st.resources {
		r.topics.markAll(st.applied.Load(), &st.window)
		r.attributes.markAll(st.applied.Load(), &st.window)
	}
	for _, w := range st.waiters {
		close(w.done)
	}
	st.waiters = nil
	st.advanceAndUnlock(st.applied.Load())
}
