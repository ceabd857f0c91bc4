package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// nothingStays are options with which no value stays in memory for long.
var nothingStays = Options{StateBytes: 1}

func TestSizeClasses(t *testing.T) {
	var sizes []int
	for n := range 5000 {
		sizes = append(sizes, n)
	}
	for n := 5000; n < 1<<40; n += n/37 + 1 {
		sizes = append(sizes, n)
	}
	last := 0
	for i, told := range SizeClasses(sizes...) {
		if size := sizes[i]; told < size || told > size+size/16+1 || told < last {
			t.Fatalf("a value of %d bytes counts as %d, one before as %d", size, told, last)
		}
		last = told
	}
}

// away returns a store none of whose n objects has its value in memory.
func away(t *testing.T, n int) (*Store, *faultyLog) {
	t.Helper()
	s, log := newFaultyStore(t, nothingStays)
	for i := range n {
		create(t, s, fmt.Sprintf("%sns/%03d", maps, i))
	}
	until(t, "all values have left memory", func() bool { s.EvictNow(); return s.Stats().Away == n })
	return s, log
}

// wantValue fails the test if e is not what create made.
func wantValue(t testing.TB, e *Entry) {
	t.Helper()
	if e == nil || e.Unreadable() != nil || string(e.Value) != string(object.Splice(value(e.Key, 0), e.Revision)) {
		t.Errorf("the entry is %+v", e)
	}
}

// TestAwayIsRead reads entries that are not in memory in all ways that there are.
func TestAwayIsRead(t *testing.T) {
	s, _ := away(t, 60)
	from, to := changelog.RangeOf(maps)
	key := maps + "ns/007"
	wantValue(t, s.Get(key))
	if s.Stats().ValueReads == 0 {
		t.Error("it was in memory")
	}
	view := s.Current(maps)
	e, err := view.Get(t.Context(), key)
	if wantValue(t, e); err != nil {
		t.Error(err)
	}
	n := 0
	err = view.Scan(t.Context(), from, to, func(e *Entry) bool { n++; wantValue(t, e); return n < 50 })
	if n != 50 || err != nil {
		t.Errorf("%d of 50 entries, %v", n, err)
	}
	w, err := s.Watch(maps, maps, s.Revision())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	changed := s.Get(key)
	s.EvictNow()
	now := commit(t, s, Change{Key: key, Expect: changed.Revision, Value: value(key, 1)})
	events := poll(t, w, now.Revision)
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	wantValue(t, events[0].Prev)
	s.EvictNow()
	var conflict *ConflictError
	if _, err := s.Commit(t.Context(), Change{Key: key, Expect: changed.Revision, Value: value(key, 2)}); !errors.As(err, &conflict) || string(conflict.Current.Value) != string(now.Value) {
		t.Errorf("the conflict is %v", err)
	}
	s.EvictNow()
	if same, err := s.Confirm(t.Context(), now); err != nil || same != now {
		t.Errorf("confirm: %v, %v", same, err)
	}
}

// TestOutlineFetched gathers entries without values in the ways that there are, and fetches them.
func TestOutlineFetched(t *testing.T) {
	s, _ := away(t, 60)
	now := s.Revision()
	key := maps + "ns/020"
	create(t, s, maps+"ns/more")
	past, err := s.At(t.Context(), maps, now)
	if err != nil {
		t.Fatal(err)
	}
	from, to := changelog.RangeOf(maps)
	for name, view := range map[string]View{"now": s.Current(maps), "past": past} {
		for way, gather := range map[string]func(f func(*Entry) bool) error{
			"outline": func(f func(*Entry) bool) error { return view.Outline(t.Context(), from, to, f) },
			"hold": func(f func(*Entry) bool) error {
				return view.Scan(t.Context(), from, to, func(e *Entry) bool { s.EvictNow(); return f(view.Hold(e)) })
			},
		} {
			var some []*Entry
			if err := gather(func(e *Entry) bool { some = append(some, e); return len(some) < 50 }); err != nil {
				t.Fatal(err)
			}
			n := 0
			for e, err := range s.Fetched(t.Context(), slices.Values(some)) {
				if err != nil {
					t.Fatal(err)
				}
				if wantValue(t, e); e.Key != some[n].Key {
					t.Errorf("%s, %s: %s in the place of %s", name, way, e.Key, some[n].Key)
				}
				n++
			}
			if n != 50 {
				t.Errorf("%s, %s: %d of 50 entries", name, way, n)
			}
		}
	}
	var held []*Entry
	if err := past.Scan(t.Context(), from, to, func(e *Entry) bool { held = append(held, past.Hold(e)); return true }); err != nil {
		t.Fatal(err)
	}
	changed := commit(t, s, Change{Key: key, Expect: s.Get(key).Revision, Value: value(key, 1)})
	create(t, s, maps+"ns/again")
	if err := s.CompactTo(t.Context(), changed.Revision); err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range s.Fetched(t.Context(), slices.Values(held)) {
		last = err
	}
	if !errors.Is(last, changelog.ErrCompacted) {
		t.Errorf("values that were compacted: %v", last)
	}
}

// TestAwayDatabaseGone expects errors that say so while the database is away, and no wrong answers.
func TestAwayDatabaseGone(t *testing.T) {
	s, log := away(t, 40)
	key := maps + "ns/001"
	view := s.Current(maps)
	log.cutOff()
	if e := s.Get(key); e == nil || !errors.Is(e.Unreadable(), changelog.ErrUnavailable) {
		t.Errorf("get: %+v", e)
	}
	if _, err := view.Get(t.Context(), key); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("get of a view: %v", err)
	}
	from, to := changelog.RangeOf(maps)
	if err := view.Scan(t.Context(), from, to, func(*Entry) bool { return true }); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("scan: %v", err)
	}
	if _, err := s.Digest(t.Context()); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("digest: %v", err)
	}
	if n, err := view.Count(t.Context(), from, to); n != 40 || err != nil {
		t.Errorf("count: %d, %v", n, err)
	}
	log.away.Store(false)
	wantValue(t, s.Get(key))
}

// TestAwayCompacted reads a view whose entries were replaced and compacted: that is gone, and nothing else is
// given in its place.
func TestAwayCompacted(t *testing.T) {
	s, _ := away(t, 40)
	view := s.Current(maps)
	key := maps + "ns/020"
	now := commit(t, s, Change{Key: key, Expect: s.Get(key).Revision, Value: value(key, 1)})
	create(t, s, maps+"ns/more")
	if err := s.CompactTo(t.Context(), now.Revision); err != nil {
		t.Fatal(err)
	}
	from, to := changelog.RangeOf(maps)
	if err := view.Scan(t.Context(), from, to, func(e *Entry) bool { wantValue(t, e); return true }); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("scan: %v", err)
	}
	if e := s.Get(key); string(e.Value) != string(now.Value) {
		t.Errorf("it is %s", e.Value)
	}
}

// TestAwayRaces has readers, selective readers, watchers, writers, evictions and compactions at once. Each
// entry that is seen has the value of its revision.
func TestAwayRaces(t *testing.T) {
	s := newStore(t, Options{StateBytes: 30_000, WindowBytes: 20_000, WindowAge: time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	whole := func(e *Entry) {
		if plain := object.Unsplice(e); string(object.Splice(plain, e.Revision)) != string(e.Value) {
			t.Errorf("%s at %d has %s", e.Key, e.Revision, e.Value)
		}
	}
	var background, readers sync.WaitGroup
	for i := range uint64(2) {
		background.Go(func() {
			for r := rand.New(rand.NewPCG(i, 7)); ctx.Err() == nil; {
				key := fmt.Sprintf("%sns%d/%d", pods, i, r.IntN(60))
				c := Change{Key: key, Value: labelled(r, key)}
				if e := s.Get(key); e != nil {
					c.Expect, c.Delete = e.Revision, r.IntN(5) == 0
				}
				commit(t, s, c)
				if r.IntN(100) == 0 {
					if err := s.CompactTo(context.Background(), s.Revision()-300); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	background.Go(func() {
		for ctx.Err() == nil {
			s.EvictNow()
		}
	})
	background.Go(func() { watchWhole(ctx, t, s, whole) })
	for i := range uint64(2) {
		readers.Go(func() {
			for r, n := rand.New(rand.NewPCG(i, 8)), 0; n < 150; n++ {
				if e := s.Get(fmt.Sprintf("%sns%d/%d", pods, r.IntN(2), r.IntN(60))); e != nil {
					whole(e)
				}
				where := []Predicate{somePredicate(r)}[:r.IntN(2)]
				from, to := changelog.RangeOf(pods)
				err := s.Current(pods).Select(ctx, from, to, where, func(e *Entry) bool { whole(e); return true })
				if err != nil && !errors.Is(err, changelog.ErrCompacted) {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
	stop()
	background.Wait()
}

// watchWhole watches pods, and expects that each event says what was there before.
func watchWhole(ctx context.Context, t *testing.T, s *Store, whole func(*Entry)) {
	w, err := s.Watch(pods, pods, s.Revision())
	if err != nil {
		t.Error(err)
		return
	}
	defer w.Close()
	last := map[string]int64{}
	for ctx.Err() == nil {
		events, _, err := w.Poll(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		for _, ev := range events {
			if ev.Type == Put {
				whole(ev.Entry)
			}
			if before, known := last[ev.Entry.Key]; ev.Prev != nil {
				if whole(ev.Prev); known && before != ev.Prev.Revision {
					t.Errorf("%s at %d follows %d, not %d", ev.Entry.Key, ev.Entry.Revision, ev.Prev.Revision, before)
				}
			}
			last[ev.Entry.Key] = ev.Entry.Revision
		}
		select {
		case <-w.Wait():
		case <-ctx.Done():
		}
	}
}
