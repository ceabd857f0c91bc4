package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

// View is the exact state of one resource at one revision.
type View interface {
	Revision() int64
	// Scan calls f for each entry with from <= key < to in key order until f returns
	// false. A view of the past may read the log and fail. Unreadable entries are left out;
	// if there were any, the error is an *UnreadableError.
	Scan(ctx context.Context, from, to string, f func(*Entry) bool) error
	// Select is Scan for a reader who is interested only in entries that satisfy all of where. It may
	// call f with others too. In memory it costs what the most selective predicate leaves, if there is an
	// index for that; what is selected often gets one.
	Select(ctx context.Context, from, to string, where []Predicate, f func(*Entry) bool) error
	// Outline is Scan for a reader who does not look at values yet: entries may be without them, until
	// Store.Fetched has read them.
	Outline(ctx context.Context, from, to string, f func(*Entry) bool) error
	// Hold returns what a reader keeps of e, an entry of this view, to get it from Store.Fetched later: e
	// itself if memory has its value anyway, else e without it.
	Hold(e *Entry) *Entry
	// Count returns the number of entries with from <= key < to.
	Count(ctx context.Context, from, to string) (int64, error)
	// Get returns the entry of key, nil if there was none. It may be unreadable.
	Get(ctx context.Context, key string) (*Entry, error)
}

// Current returns the current state of resource as a constant-time copy. Its revision
// is the newest of all resources that the Store has applied.
func (s *Store) Current(resource string) View {
	return s.state.current(resource).at(s.values, resource)
}

// At returns the state of resource at revision: a kept snapshot or the current state
// when nothing of the resource changed since, else a view that reads the log.
// ErrCompacted if revision is below the floor, ErrFuture if the Store has not reached
// it: Wait first.
func (s *Store) At(ctx context.Context, resource string, revision int64) (View, error) {
	return s.values.at(ctx, resource, revision)
}

func (v *values) at(ctx context.Context, resource string, revision int64) (View, error) {
	if revision < v.state.floor.Load() {
		return nil, fmt.Errorf("state of %s at %d: %w", resource, revision, changelog.ErrCompacted)
	}
	if revision > v.state.applied.Load() {
		return nil, fmt.Errorf("state of %s at %d: %w", resource, revision, ErrFuture)
	}
	if v.state.unchangedSince(resource, revision) {
		if snap := v.state.current(resource); snap.covers(revision) {
			return &stateView{snap, v, resource, revision}, nil
		}
	}
	if snap := v.state.keptAt(resource, revision); snap != nil {
		return &stateView{*snap, v, resource, revision}, nil
	}
	return &logView{values: v, revision: revision}, nil
}

// Get returns the current entry of key, nil if it is absent. It never waits for the
// database. The entry may be unreadable: see Entry.Unreadable.
func (s *Store) Get(key string) *Entry {
	s.state.mu.RLock()
	e := s.state.get(key)
	s.state.mu.RUnlock()
	return s.values.readable(e)
}

// ChangedAt returns a revision that stays the same as long as no object of resource
// changes: that of the last change, or of the last full read of the log.
func (s *Store) ChangedAt(resource string) int64 {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	if r := s.state.resources[resource]; r != nil {
		return r.last
	}
	return s.state.base
}

// Since returns the changes of resource after a revision, and the revision through which they
// are complete. It runs no SQL and does not wait: complete is false if the window does not have
// all of the changes any more, and then the caller reads Current.
func (s *Store) Since(resource string, after int64) (events []*Event, through int64, complete bool) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	start, through := s.state.base, s.state.applied.Load()
	r := s.state.resources[resource]
	if r != nil {
		start = r.start
	}
	if after < start {
		return nil, 0, false
	}
	if r != nil {
		events = slices.Clone(r.since(after))
	}
	return events, through, true
}

// stateView is a View in memory.
type stateView struct {
	snapshot
	values   *values
	resource string
	revision int64
}

func (v *stateView) Revision() int64 { return v.revision }

func (v *stateView) Scan(ctx context.Context, from, to string, f func(*Entry) bool) error {
	return v.values.visit(ctx, v.within(from, to), f)
}

// Outline reads values all the same if they are transformed: only that tells which are unreadable.
func (v *stateView) Outline(ctx context.Context, from, to string, f func(*Entry) bool) error {
	if v.values.o.Transformer != nil {
		return v.Scan(ctx, from, to, f)
	}
	visit, failed := v.values.readableOnly(f)
	for e := range v.within(from, to) {
		if e.isSealed() {
			visit(e)
		} else if !f(e) {
			break
		}
	}
	return failed()
}

func (v *stateView) Hold(e *Entry) *Entry {
	if !v.values.state.bounded() {
		return e
	}
	if there := v.held(e); there.isAway() {
		return there
	}
	return e
}

// within yields the entries from <= key < to in key order, of which some may be away.
func (v *stateView) within(from, to string) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		v.entries.Ascend(from, func(key string, e *Entry) bool {
			return key < to && yield(e)
		})
	}
}

// all yields all entries in key order, of which some may be away.
func (f *frozen) all() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		f.entries.Scan(func(_ string, e *Entry) bool { return yield(e) })
	}
}

// held returns e as f has it, which may be without its value.
func (f *frozen) held(e *Entry) *Entry {
	there, _ := f.entries.Get(e.Key)
	return there
}

// visit calls f with the readable ones of entries until f returns false.
func (v *values) visit(ctx context.Context, entries iter.Seq[*Entry], f func(*Entry) bool) error {
	visit, failed := v.readableOnly(f)
	if !v.state.bounded() {
		entries(visit)
		return failed()
	}
	for e, err := range v.fetched(ctx, entries) {
		if err != nil {
			return err
		}
		if !visit(e) {
			break
		}
	}
	return failed()
}

func (v *stateView) Count(ctx context.Context, from, to string) (int64, error) {
	return int64(rank(v.entries, to) - rank(v.entries, from)), nil
}

func (v *stateView) Get(ctx context.Context, key string) (*Entry, error) {
	e, _ := v.entries.Get(key)
	if e == nil || !e.isAway() {
		return v.values.readable(e), nil
	}
	e, err := v.values.withValue(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("get %s at %d: %w", key, v.revision, err)
	}
	return e, nil
}

// logView is a View of the past that reads the log.
type logView struct {
	values   *values
	revision int64
}

func (v *logView) Revision() int64 { return v.revision }

func (v *logView) Scan(ctx context.Context, from, to string, f func(*Entry) bool) error {
	next := func(from string, limit int) ([]changelog.Row, error) {
		return v.values.log.State(ctx, from, to, v.revision, limit)
	}
	visit, failed := v.values.readableOnly(f)
	for rows, err := range pages.ByKey(from, next) {
		if err != nil {
			return fmt.Errorf("read state at %d: %w", v.revision, err)
		}
		for i := range rows {
			if !visit(v.values.entryOf(ctx, &rows[i])) {
				return failed()
			}
		}
	}
	return failed()
}

func (v *logView) Count(ctx context.Context, from, to string) (int64, error) {
	n, err := v.values.log.Count(ctx, from, to, v.revision)
	if err != nil {
		return 0, fmt.Errorf("count state at %d: %w", v.revision, err)
	}
	return n, nil
}

func (v *logView) Get(ctx context.Context, key string) (*Entry, error) {
	rows, err := v.values.log.State(ctx, key, changelog.After(key), v.revision, 1)
	if err != nil {
		return nil, fmt.Errorf("read %s at %d: %w", key, v.revision, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return v.values.entryOf(ctx, &rows[0]), nil
}

func (v *logView) Outline(ctx context.Context, from, to string, f func(*Entry) bool) error {
	return v.Scan(ctx, from, to, f)
}

func (v *logView) Hold(e *Entry) *Entry {
	if v.values.state.newest(e.Key) == e {
		return e
	}
	return e.withoutValue()
}
