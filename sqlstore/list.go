package sqlstore

import (
	"context"
	"fmt"
)

// At returns the state of resource at revision: a kept snapshot or the current state
// when nothing of the resource changed since, else a view that reads the log.
// ErrCompacted if revision is below the floor, ErrFuture if the Store has not reached
// it: Wait first.
func (s *Store) At(ctx context.Context, resource string, revision int64) (View, error) {
	if revision < s.Floor() {
		return nil, fmt.Errorf("state of %s at %d: %w", resource, revision, ErrCompacted)
	}
	if revision > s.Revision() {
		return nil, fmt.Errorf("state of %s at %d: %w", resource, revision, ErrFuture)
	}
	if s.state.unchangedSince(resource, revision) {
		if snap := s.state.current(resource); snap.covers(revision) {
			return &stateView{snap, &s.state, resource, revision}, nil
		}
	}
	if snap := s.state.keptAt(resource, revision); snap != nil {
		return &stateView{*snap, &s.state, resource, revision}, nil
	}
	return &logView{s: s, revision: revision}, nil
}

// Keep holds on to view, so that later pages of a list are read from memory. The
// oldest kept view of a resource goes when there are more than Options.Snapshots, and
// all go that fall below the floor.
func (s *Store) Keep(view View) {
	if v, ok := view.(*stateView); ok {
		v.state.keepView(v)
	}
}

func (n *snapshot) covers(revision int64) bool {
	return n.from <= revision && revision <= n.through
}

func (st *state) unchangedSince(name string, revision int64) bool {
	st.mu.RLock()
	defer st.mu.RUnlock()
	r := st.resources[name]
	return r == nil || r.last <= revision
}

func (st *state) keptAt(name string, revision int64) *snapshot {
	st.mu.RLock()
	defer st.mu.RUnlock()
	if r := st.resources[name]; r != nil {
		for _, k := range r.kept {
			if k.covers(revision) {
				return k
			}
		}
	}
	return nil
}

func (st *state) keepView(v *stateView) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.resource(v.resource)
	for i, k := range r.kept {
		if k.entries == v.entries {
			r.kept[i] = widest(k, &v.snapshot)
			return
		}
	}
	if len(r.kept) == st.keep {
		r.kept = append(r.kept[:0], r.kept[1:]...)
	}
	r.kept = append(r.kept, &v.snapshot)
}

func widest(a, b *snapshot) *snapshot {
	if b.through > a.through {
		return b
	}
	return a
}

// dropBelow forgets kept snapshots that no revision from floor on can be read from.
func (st *state) dropBelow(floor int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, r := range st.resources {
		live := r.kept[:0]
		for _, k := range r.kept {
			if k.through >= floor {
				live = append(live, k)
			}
		}
		clear(r.kept[len(live):])
		r.kept = live
	}
}

// logView is a View of the past that reads the log.
type logView struct {
	s        *Store
	revision int64
}

func (v *logView) Revision() int64 { return v.revision }

func (v *logView) Scan(ctx context.Context, from, to string, f func(*Entry) bool) error {
	next := func(from string, limit int) ([]Row, error) {
		return v.s.log.State(ctx, from, to, v.revision, limit)
	}
	for rows, err := range pagesOf(from, next) {
		if err != nil {
			return fmt.Errorf("read state at %d: %w", v.revision, err)
		}
		for i := range rows {
			if !f(v.s.entryOf(&rows[i])) {
				return nil
			}
		}
	}
	return nil
}

func (v *logView) Count(ctx context.Context, from, to string) (int64, error) {
	n, err := v.s.log.Count(ctx, from, to, v.revision)
	if err != nil {
		return 0, fmt.Errorf("count state at %d: %w", v.revision, err)
	}
	return n, nil
}

func (v *logView) Get(ctx context.Context, key string) (*Entry, error) {
	rows, err := v.s.log.State(ctx, key, after(key), v.revision, 1)
	if err != nil {
		return nil, fmt.Errorf("read %s at %d: %w", key, v.revision, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return v.s.entryOf(&rows[0]), nil
}
