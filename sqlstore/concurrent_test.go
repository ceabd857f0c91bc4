package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/plinth-io/plinth/sqlstore"
)

// acked is what a writer was told.
type acked struct {
	entry   *Entry
	expect  int64
	deleted bool
}

// writeRandomly does n acknowledged writes on few keys that others write too.
func writeRandomly(t testing.TB, s *Store, seed uint64, n int) (done []acked) {
	r := rand.New(rand.NewPCG(seed, 2))
	for len(done) < n {
		resource := []string{maps, pods}[r.IntN(2)]
		key := fmt.Sprintf("%sns%d/%d", resource, r.IntN(4), r.IntN(4))
		c := Change{Key: key, Value: value(key, r.IntN(100))}
		if e := s.Get(key); e != nil {
			c.Expect, c.Delete = e.Revision, r.IntN(3) == 0
		}
		e, err := s.Commit(context.Background(), c)
		var conflict *ConflictError
		if errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			t.Errorf("commit: %v", err)
			return done
		}
		done = append(done, acked{e, c.Expect, c.Delete})
	}
	return done
}

func TestConcurrentWriters(t *testing.T) {
	s := newStore(t, Options{MaxBatch: 7})
	var watchers []*Watcher
	for _, resource := range []string{maps, pods} {
		w, err := s.Watch(resource, resource, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		watchers = append(watchers, w)
	}
	all := make([][]acked, 16)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = writeRandomly(t, s, uint64(i), 150) })
	}
	wg.Wait()
	want := map[int64]acked{}
	for _, writer := range all {
		var last int64
		for _, a := range writer {
			if a.entry.Revision <= last {
				t.Errorf("a writer's revision %d after %d", a.entry.Revision, last)
			}
			last = a.entry.Revision
			want[last] = a
		}
	}
	if len(want) != 16*150 {
		t.Errorf("%d different revisions, %d acknowledged", len(want), 16*150)
	}
	for _, w := range watchers {
		checkOrder(t, poll(t, w, s.Revision()), want)
	}
	if len(want) != 0 {
		t.Errorf("%d acknowledged writes were not seen", len(want))
	}
}

// checkOrder checks that events are in order, that each follows its key's one before,
// and takes what was acknowledged out of want.
func checkOrder(t *testing.T, events []*Event, want map[int64]acked) {
	t.Helper()
	var last int64
	newest := map[string]*Entry{}
	for _, ev := range events {
		a := want[ev.Entry.Revision]
		if a.entry != ev.Entry || a.deleted != (ev.Type == Delete) {
			t.Errorf("event %+v, acknowledged %+v", ev, a)
		}
		if ev.Entry.Revision <= last || ev.Prev != newest[ev.Entry.Key] || (ev.Prev != nil && ev.Prev.Revision != a.expect) {
			t.Errorf("event %d after %d, replaces %v, expected %d", ev.Entry.Revision, last, ev.Prev, a.expect)
		}
		last = ev.Entry.Revision
		newest[ev.Entry.Key] = ev.Entry
		if ev.Type == Delete {
			delete(newest, ev.Entry.Key)
		}
		delete(want, last)
	}
}

// compactSometimes follows 300 revisions behind the head.
func compactSometimes(ctx context.Context, t *testing.T, s *Store) {
	for ctx.Err() == nil {
		if to := s.Revision() - 300; to > 0 {
			if err := s.CompactTo(context.Background(), to); err != nil {
				t.Errorf("compact: %v", err)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestPagesUnderWrites reads lists page by page, kept and from the log, while the
// resource changes and the past is compacted.
func TestPagesUnderWrites(t *testing.T) {
	s := newStore(t, Options{Snapshots: 2})
	for i := range 500 {
		create(t, s, fmt.Sprintf("%sns%d/%03d", maps, i%3, i))
	}
	ctx, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() {
		for seed := uint64(0); ctx.Err() == nil; seed++ {
			writeRandomly(t, s, seed, 20)
		}
	})
	background.Go(func() { compactSometimes(ctx, t, s) })
	var readers sync.WaitGroup
	for i := range 6 {
		readers.Go(func() {
			for range 8 {
				readPages(t, s, i%2 == 0)
			}
		})
	}
	readers.Wait()
	stop()
	background.Wait()
}

func readPages(t *testing.T, s *Store, keep bool) {
	first := s.Current(maps)
	if keep {
		s.Keep(first)
	}
	from, to := RangeOf(maps)
	want := revisions(t, first, from, to)
	got := map[string]int64{}
	for from != "" {
		view, err := s.At(context.Background(), maps, first.Revision())
		if errors.Is(err, ErrCompacted) {
			return
		}
		if err != nil {
			t.Errorf("page from %s: %v", from, err)
			return
		}
		if from, err = readPage(view, from, to, got); err != nil {
			if !errors.Is(err, ErrCompacted) {
				t.Errorf("page: %v", err)
			}
			return
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages at %d:\n%s", first.Revision(), diff)
	}
}

// readPage adds 50 entries to got and returns where the next page begins.
func readPage(view View, from, to string, got map[string]int64) (next string, err error) {
	n := 0
	err = view.Scan(context.Background(), from, to, func(e *Entry) bool {
		if n++; n > 50 {
			next = e.Key
			return false
		}
		got[e.Key] = e.Revision
		return true
	})
	return next, err
}
