package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
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

// compactSometimes follows 300 revisions behind the head, and never overtakes what is kept.
func compactSometimes(ctx context.Context, t *testing.T, s *Store, keep *atomic.Int64) {
	for ctx.Err() == nil {
		if to := min(s.Revision()-300, keep.Load()); to > 0 {
			if err := s.CompactTo(context.Background(), to); err != nil {
				t.Errorf("compact: %v", err)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestOneBadChangeAlone(t *testing.T) {
	s, log := newFaultyStore(t, Options{})
	log.set(func(batch []changelog.Change) fault {
		for _, c := range batch {
			if strings.HasSuffix(c.Key, "bad") {
				return refused
			}
		}
		return works
	})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for j := range 4 {
				create(t, s, fmt.Sprintf("%sns/%d-%d", maps, i, j))
			}
		})
		wg.Go(func() {
			if _, err := s.Commit(t.Context(), Change{Key: fmt.Sprintf("%sns/%d-bad", maps, i), Value: value("bad", 0)}); err == nil {
				t.Error("the bad change was accepted")
			}
		})
	}
	wg.Wait()
	if n := s.Stats().Entries[maps]; n != 200 {
		t.Errorf("%d entries, want 200", n)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("a bad change made the store unhealthy: %v", err)
	}
}
