package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// objects returns all objects of a Store without their revisions.
func objects(t *testing.T, s *Store) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, resource := range []string{pods, maps} {
		from, to := changelog.RangeOf(resource)
		err := s.Current(resource).Scan(t.Context(), from, to, func(e *Entry) bool {
			all[e.Key] = string(object.Unsplice(e))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// pinned pins the state until the test ends.
func pinned(t testing.TB, s *Store) *Pin {
	t.Helper()
	pin, err := s.Pin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pin.Release)
	return pin
}

// change creates, changes or deletes an object at random.
func change(t *testing.T, s *Store, r *rand.Rand) {
	t.Helper()
	resource := pods
	if r.IntN(2) == 0 {
		resource = maps
	}
	key := fmt.Sprintf("%sns/%d", resource, r.IntN(30))
	var err error
	if e := s.Get(key); e != nil && r.IntN(3) == 0 {
		_, err = s.Commit(t.Context(), object.Tombstone(e))
	} else {
		_, err = storetest.Put(t.Context(), s, key, fmt.Sprintf(`{"metadata":{"name":"x"},"n":%d}`, r.IntN(5)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRewind goes back to states taken at random, newer and older ones, and wants the same objects, and
// nothing written for those that have not changed. Watchers see what changes.
func TestRewind(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := newStore(t, Options{WindowBytes: 2000})
	type taken struct {
		pin     *Pin
		objects map[string]string
	}
	var all []taken
	w, err := s.Watch(pods, pods, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 30 {
		for range r.IntN(40) {
			change(t, s, r)
		}
		pin := pinned(t, s)
		all = append(all, taken{pin, objects(t, s)})
		for range r.IntN(40) {
			change(t, s, r)
		}
		back, before := all[r.IntN(len(all))], objects(t, s)
		n, err := s.Rewind(t.Context(), back.pin)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(back.objects, objects(t, s)); diff != "" {
			t.Fatalf("rewound (-want +got):\n%s", diff)
		}
		if want := differing(before, back.objects); n != want {
			t.Errorf("%d objects changed, want %d", n, want)
		}
	}
	seen := make(map[string]string)
	for through := int64(0); through < s.Revision(); {
		var events []*Event
		if events, through, err = w.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			if ev.Type == Delete {
				delete(seen, ev.Entry.Key)
			} else {
				seen[ev.Entry.Key] = string(object.Unsplice(ev.Entry))
			}
		}
	}
	want := objects(t, s)
	for key := range want {
		if key[:len(pods)] != pods {
			delete(want, key)
		}
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("what a watcher has seen (-want +got):\n%s", diff)
	}
}

func differing(a, b map[string]string) (n int) {
	for key := range a {
		if a[key] != b[key] {
			n++
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			n++
		}
	}
	return n
}

// TestRewindPinned compacts all that it may. What is pinned can be rewound to, and what is released
// cannot.
func TestRewindPinned(t *testing.T) {
	s := newStore(t, Options{History: time.Millisecond, CompactEvery: time.Millisecond})
	create(t, s, maps+"ns/a")
	revision, pin := s.Revision(), pinned(t, s)
	for i := range 50 {
		if _, err := storetest.Put(t.Context(), s, maps+"ns/a", fmt.Sprintf(`{"metadata":{"name":"a"},"n":%d}`, i)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if floor := s.Floor(); floor > revision {
		t.Fatalf("floor %d above the pin at %d", floor, revision)
	}
	if n, err := s.Rewind(t.Context(), pin); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	revision = s.Revision() // to which the pin has moved
	pin.Release()
	for ctx := t.Context(); s.Floor() <= revision && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
		if _, err := storetest.Put(ctx, s, maps+"ns/b", `{"metadata":{"name":"b"}}`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Rewind(t.Context(), pin); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("to a revision that is compacted: %v", err)
	}
}

// TestRewindWhileWriting has somebody write an object all the time. Rewind ends, and what nobody writes is as it was; it may
// fail only because of the object that was never as it was.
func TestRewindWhileWriting(t *testing.T) {
	s := newStore(t, Options{})
	create(t, s, maps+"ns/a")
	create(t, s, maps+"ns/quiet")
	pin := pinned(t, s)
	want := objects(t, s)[maps+"ns/quiet"]
	if _, err := storetest.Put(t.Context(), s, maps+"ns/quiet", `{"metadata":{"name":"quiet"},"n":1}`); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = storetest.Put(ctx, s, maps+"ns/a", fmt.Sprintf(`{"metadata":{"name":"a"},"n":%d}`, i))
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond) // so that some rewinds are faster
		}
	}()
	for range 5 {
		if _, err := s.Rewind(t.Context(), pin); err != nil && !strings.Contains(err.Error(), "changes 1 objects all the time") {
			t.Error(err)
		}
	}
	stop()
	<-done
	create(t, s, maps+"ns/last") // the write that was cut off may still be under way; it comes before this one
	if got := objects(t, s)[maps+"ns/quiet"]; got != want {
		t.Errorf("what nobody writes is %s, want %s", got, want)
	}
	if _, err := s.Rewind(t.Context(), pin); err != nil {
		t.Error(err)
	}
}

// BenchmarkRewind brings back 1,000 objects, half of which were deleted and half changed.
func BenchmarkRewind(b *testing.B) {
	s := storetest.Open(b, storetest.Memory, Options{})
	key := func(i int) string { return fmt.Sprintf("%sns/%04d", maps, i) }
	storetest.PutMany(b, 1000, func(i int) (*Entry, error) {
		return storetest.Put(b.Context(), s, key(i), `{"metadata":{"name":"x"}}`)
	})
	pin := pinned(b, s)
	for b.Loop() {
		b.StopTimer()
		storetest.PutMany(b, 1000, func(i int) (*Entry, error) {
			if i%2 == 0 {
				return s.Commit(b.Context(), object.Tombstone(s.Get(key(i))))
			}
			return storetest.Put(b.Context(), s, key(i), `{"metadata":{"name":"y"}}`)
		})
		b.StartTimer()
		if n, err := s.Rewind(b.Context(), pin); err != nil || n != 1000 {
			b.Fatal(n, err)
		}
	}
}
