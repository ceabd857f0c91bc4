package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

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
	log := newFaultyLog(t, fileDSN(t))
	s := openStore(t, log, Options{WindowBytes: 30000})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var whole model
	var background sync.WaitGroup
	var followed atomic.Int64
	background.Go(func() { whole.rows = followAll(t, ctx, s, maps, &followed) })
	background.Go(func() { compactSometimes(ctx, t, s, &followed) })

	var writers, readers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() { writeRandomly(t, s, uint64(100+i), 400) })
	}
	seen := make([]seenRange, 120)
	for i := range seen {
		readers.Go(func() { seen[i] = watchSome(t, s, log, uint64(i)) })
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
func watchSome(t *testing.T, s *Store, log changelog.Log, seed uint64) (v seenRange) {
	r := rand.New(rand.NewPCG(seed, 3))
	time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	v.prefix = []string{maps, maps + "ns1/", maps + "ns2/3"}[r.IntN(3)]
	v.after = s.Floor() + r.Int64N(s.Revision()-s.Floor()+1)
	v.through = v.after
	w, err := s.Watch(maps, v.prefix, v.after)
	if errors.Is(err, changelog.ErrCompacted) {
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
		if errors.Is(err, changelog.ErrCompacted) {
			// The log's floor may be a moment ahead of what the store has heard.
			if head, err := log.Head(context.Background()); err != nil || head.Floor <= v.through {
				t.Errorf("watcher at %d was refused, the floor is %d, %v", v.through, head.Floor, err)
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

// followAll watches a resource from the start until ctx ends and everything is seen. It tells how
// far it is, so that compaction does not overtake it on a busy machine.
func followAll(t *testing.T, ctx context.Context, s *Store, resource string, followed *atomic.Int64) (rows []modelRow) {
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
		followed.Store(through)
		if ended && through >= s.Revision() {
			return rows
		}
		select {
		case <-w.Wait():
		case <-ctx.Done():
		}
	}
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
	before := heap()
	for i := range watchers {
		var err error
		if watchers[i], err = s.Watch(maps, fmt.Sprintf("%sns%d/", maps, i), s.Revision()); err != nil {
			t.Fatal(err)
		}
	}
	if each := (heap() - before) / n; each > 2000 {
		t.Errorf("%d bytes for each watcher", each)
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

// heap returns how many bytes of the heap are reachable.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestEachChangeWakes has watchers sleep between changes: each change must wake those that it concerns.
func TestEachChangeWakes(t *testing.T) {
	s := newStore(t, Options{})
	watchers := map[string]*Watcher{}
	for _, prefix := range []string{maps, maps + "ns/", maps + "ns/a"} {
		w, err := s.Watch(maps, prefix, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		watchers[prefix] = w
	}
	late := time.After(time.Minute)
	for i := range 5 {
		for _, w := range watchers {
			if events, _, err := w.Poll(t.Context()); err != nil || len(events) != 0 {
				t.Fatalf("before change %d: %d events, %v", i, len(events), err)
			}
		}
		e := create(t, s, fmt.Sprintf("%sns/a%d", maps, i))
		for prefix, w := range watchers {
			select {
			case <-w.Wait():
			case <-late:
				t.Fatalf("change %d has not woken the watcher of %s", i, prefix)
			}
			if events, _, err := w.Poll(t.Context()); err != nil || len(events) != 1 || events[0].Entry.Revision != e.Revision {
				t.Fatalf("change %d: %d events, %v", i, len(events), err)
			}
		}
	}
}

// TestWaitIsEnough checks that a watcher which is polled only when Wait says so gets every
// event, from the log and from the window.
func TestWaitIsEnough(t *testing.T) {
	for _, window := range []int{1, 200000, 32 << 20} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			s := newStore(t, Options{WindowBytes: window})
			w, err := s.Watch(maps, maps, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					for j := range 20 {
						create(t, s, fmt.Sprintf("%sns/%d-%d", maps, i, j))
					}
				})
			}
			wg.Wait()
			for n := 0; n < 1000; {
				select {
				case <-w.Wait():
				default:
					t.Fatalf("after %d of 1000 events Wait says that there are no more", n)
				}
				events, _, err := w.Poll(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				n += len(events)
			}
			if events, through, err := w.Poll(t.Context()); err != nil || len(events) > 0 || through != s.Revision() {
				t.Errorf("at the end: %d events through %d, %v", len(events), through, err)
			}
			select {
			case <-w.Wait():
				t.Error("Wait promises more than there is")
			default:
			}
		})
	}
}
