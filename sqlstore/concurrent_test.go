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

func TestWatchFromEveryRevision(t *testing.T) {
	for _, window := range []int{1, 20000, 1 << 20} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			s := newStore(t, Options{WindowBytes: window})
			writeRandomly(t, s, 1, 150)
			all := history(t, s, maps)
			for after := range s.Revision() + 1 {
				w, err := s.Watch(maps, maps, after)
				if err != nil {
					t.Fatal(err)
				}
				want := model{rows: all}
				if diff := cmp.Diff(want.events(maps, after, s.Revision()), rowsOf(poll(t, w, s.Revision()))); diff != "" {
					t.Fatalf("watch after %d:\n%s", after, diff)
				}
				w.Close()
			}
		})
	}
}

// history is everything that happened to a resource up to now, as the log has it.
func history(t testing.TB, s *Store, resource string) []modelRow {
	t.Helper()
	w, err := s.Watch(resource, resource, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return rowsOf(poll(t, w, s.Revision()))
}

// TestWatchersUnderLoad starts watchers at random while writes and compaction go on.
// One more watcher, that was there from the start and keeps up, knows what they must see.
func TestWatchersUnderLoad(t *testing.T) {
	s := newStore(t, Options{WindowBytes: 30000})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var whole model
	var background sync.WaitGroup
	background.Go(func() { whole.rows = followAll(t, ctx, s, maps) })
	background.Go(func() { compactSometimes(ctx, t, s) })

	var writers, readers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() { writeRandomly(t, s, uint64(100+i), 400) })
	}
	seen := make([]seenRange, 120)
	for i := range seen {
		readers.Go(func() { seen[i] = watchSome(t, s, uint64(i)) })
	}
	writers.Wait()
	readers.Wait()
	end := s.Revision()
	stop()
	background.Wait()
	compacted := 0
	for _, v := range seen {
		if v.compacted {
			compacted++
		}
		if diff := cmp.Diff(whole.events(v.prefix, v.after, v.through), v.rows); diff != "" {
			t.Errorf("watch of %s from %d to %d of %d:\n%s", v.prefix, v.after, v.through, end, diff)
		}
	}
	t.Logf("%d of %d watchers were overtaken by the floor; %d pages read from the log", compacted, len(seen), s.Stats().WatchReads)
}

type seenRange struct {
	prefix         string
	after, through int64
	rows           []modelRow
	compacted      bool
}

// watchSome watches a random prefix from a random revision for a while, slowly.
func watchSome(t *testing.T, s *Store, seed uint64) (v seenRange) {
	r := rand.New(rand.NewPCG(seed, 3))
	time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	v.prefix = []string{maps, maps + "ns1/", maps + "ns2/3"}[r.IntN(3)]
	v.after = s.Floor() + r.Int64N(s.Revision()-s.Floor()+1)
	v.through = v.after
	w, err := s.Watch(maps, v.prefix, v.after)
	if errors.Is(err, ErrCompacted) {
		return seenRange{compacted: true}
	}
	if err != nil {
		t.Error(err)
		return v
	}
	defer w.Close()
	for range 40 {
		events, through, err := w.Poll(context.Background())
		v.rows = append(v.rows, rowsOf(events)...)
		v.through = through
		if errors.Is(err, ErrCompacted) {
			if s.Floor() <= v.through {
				t.Errorf("watcher at %d was refused, the floor is %d", v.through, s.Floor())
			}
			v.compacted = true
			return v
		}
		if err != nil {
			t.Errorf("poll: %v", err)
			return v
		}
		select {
		case <-w.Wait():
		case <-time.After(time.Duration(1+r.IntN(10)) * time.Millisecond):
		}
	}
	return v
}

// followAll watches a resource from the start until ctx ends and everything is seen.
func followAll(t *testing.T, ctx context.Context, s *Store, resource string) (rows []modelRow) {
	w, err := s.Watch(resource, resource, 0)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer w.Close()
	for {
		ended := ctx.Err() != nil
		events, through, err := w.Poll(context.Background())
		if err != nil {
			t.Errorf("the watcher that keeps up: %v", err)
			return rows
		}
		rows = append(rows, rowsOf(events)...)
		if ended && through >= s.Revision() {
			return rows
		}
		select {
		case <-w.Wait():
		case <-ctx.Done():
		}
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

func TestSlowWatcher(t *testing.T) {
	s := newStore(t, Options{WindowBytes: 1 << 16})
	w, err := s.Watch(maps, maps, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 100 {
				create(t, s, fmt.Sprintf("%sns/%d-%d", maps, i, j))
			}
		})
	}
	wg.Wait()
	if v := s.Stats(); v.WindowBytes > 1<<16 || v.WindowEvents >= 2000 {
		t.Errorf("window of %d bytes and %d events", v.WindowBytes, v.WindowEvents)
	}
	events := poll(t, w, s.Revision())
	if len(events) != 2000 {
		t.Errorf("%d events, want 2000", len(events))
	}
	for i := 1; i < len(events); i++ {
		if events[i].Entry.Revision <= events[i-1].Entry.Revision {
			t.Fatalf("event %d after %d", events[i].Entry.Revision, events[i-1].Entry.Revision)
		}
	}
	if s.Stats().WatchReads == 0 {
		t.Error("nothing was read from the log: the test did not make the watcher slow")
	}
}

// TestQuietResource checks that a start as old as the Store needs no SQL for a
// resource that has not changed since.
func TestQuietResource(t *testing.T) {
	s := newStore(t, Options{WindowBytes: 1})
	a := create(t, s, pods+"ns/a")
	for i := range 50 {
		create(t, s, fmt.Sprintf("%sns/%d", maps, i))
	}
	w, err := s.Watch(pods, pods, a.Revision)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if events := poll(t, w, s.Revision()); len(events) != 0 || s.Stats().WatchReads != 0 {
		t.Errorf("%d events, %d reads", len(events), s.Stats().WatchReads)
	}
}

func TestIdleWatchersAreCheap(t *testing.T) {
	s := newStore(t, Options{})
	create(t, s, maps+"ns/a")
	const n = 10000
	watchers := make([]*Watcher, n)
	bytes := testing.AllocsPerRun(1, func() {
		for i := range watchers {
			if watchers[i] != nil {
				watchers[i].Close()
			}
			watchers[i], _ = s.Watch(maps, fmt.Sprintf("%sns%d/", maps, i), s.Revision())
		}
	})
	if per := bytes / n; per > 20 {
		t.Errorf("%.0f allocations for each watcher", per)
	}
	create(t, s, maps+"ns77/a")
	woken := 0
	for _, w := range watchers {
		if events, _, err := w.Poll(t.Context()); err != nil {
			t.Fatal(err)
		} else if len(events) > 0 {
			woken++
		}
		w.Close()
	}
	if woken != 1 {
		t.Errorf("%d watchers saw the change of one namespace", woken)
	}
}
