package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

func writeEvent(ctx context.Context, store *sqlstore.Store, name, more string) (*sqlstore.Entry, error) {
	return storetest.Put(ctx, store, eventPrefix+"default/"+name,
		`{"kind":"Event","apiVersion":"v1","metadata":{"name":"`+name+`","namespace":"default"`+more+`}}`)
}

func writeSettings(ctx context.Context, store *sqlstore.Store, name string) (*sqlstore.Entry, error) {
	return storetest.Put(ctx, store, "/registry/core/configmaps/default/"+name, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"`+name+`"}}`)
}

func must(t testing.TB) func(*sqlstore.Entry, error) *sqlstore.Entry {
	return func(e *sqlstore.Entry, err error) *sqlstore.Entry {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

// following starts an expiry that follows Events without deleting any, and returns when the expiry
// knows n changes.
func following(t *testing.T, store *sqlstore.Store, ttl time.Duration, n int) *expiry {
	t.Helper()
	x := &expiry{store: store, ttl: ttl, added: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := x.follow(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	x.awaitChanges(t, n)
	return x
}

func (x *expiry) known() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.changes)
}

func (x *expiry) awaitChanges(t *testing.T, n int) {
	t.Helper()
	for begun := time.Now(); x.known() != n; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("%d changes are known, not %d", x.known(), n)
		}
	}
}

// TestExpire calls expire with times of its own. The ages of events are counted from the commit
// times in the log.
func TestExpire(t *testing.T) {
	store := storetest.Open(t, storetest.Memory, sqlstore.Options{})
	other := must(t)(writeSettings(t.Context(), store, "a"))
	first := must(t)(writeEvent(t.Context(), store, "first", ""))
	held := must(t)(writeEvent(t.Context(), store, "held", `,"finalizers":["example.com/held"]`))
	x := following(t, store, time.Hour, 2)
	w, err := store.Watch(eventPrefix, eventPrefix, store.Revision())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()

	// An event that is exactly an hour old stays, and the next look is after the shortest pause.
	at := time.UnixMilli(first.At)
	if next := x.expire(t.Context(), at.Add(time.Hour)); store.Get(first.Key) != first || next != expireEvery {
		t.Errorf("at an hour: %v, next in %v", store.Get(first.Key), next)
	}
	if next := x.expire(t.Context(), at); next != time.Hour {
		t.Errorf("new events: next in %v", next)
	}
	if x.known() != 2 {
		t.Errorf("%d changes are known after nothing was old", x.known())
	}

	// A change makes an event young again.
	changed := later(t, store, held, "first")
	x.awaitChanges(t, 3)
	next := x.expire(t.Context(), time.UnixMilli(changed.At).Add(time.Hour))
	if store.Get(held.Key) != nil || store.Get(first.Key) != changed {
		t.Errorf("held is %v, first %v", store.Get(held.Key), store.Get(first.Key))
	}
	if next <= 0 || x.known() != 1 {
		t.Errorf("next in %v, %d changes are known", next, x.known())
	}
	if next = x.expire(t.Context(), time.UnixMilli(changed.At+1).Add(time.Hour)); next != 0 || x.known() != 0 || store.Get(first.Key) != nil {
		t.Errorf("the end: next in %v, %d changes are known", next, x.known())
	}
	if store.Get(other.Key) != other {
		t.Error("another object is gone")
	}
	wantDeleted(t, w, held.Key, first.Key)
}

// later waits until the clock has gone on, and then changes an event.
func later(t *testing.T, store *sqlstore.Store, e *sqlstore.Entry, name string) *sqlstore.Entry {
	t.Helper()
	for time.Now().UnixMilli() <= e.At+1 {
		time.Sleep(time.Millisecond)
	}
	changed := must(t)(writeEvent(t.Context(), store, name, `,"labels":{"changed":"again"}`))
	if changed.At <= e.At {
		t.Fatalf("changed at %d, before at %d", changed.At, e.At)
	}
	return changed
}

func wantDeleted(t *testing.T, w *sqlstore.Watcher, keys ...string) {
	t.Helper()
	for len(keys) > 0 {
		<-w.Wait()
		events, _, err := w.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			if ev.Type != sqlstore.Delete {
				continue
			}
			if len(keys) == 0 || ev.Entry.Key != keys[0] || ev.Prev == nil {
				t.Fatalf("%s was deleted (before: %v), not %v", ev.Entry.Key, ev.Prev, keys)
			}
			keys = keys[1:]
		}
	}
}

// TestExpireAfterRestart opens a database again. The ages of events are known from the log.
func TestExpireAfterRestart(t *testing.T) {
	for _, d := range logtest.Dialects {
		t.Run(d.Name, func(t *testing.T) {
			dsn := d.Fresh(t)
			store := storetest.Open(t, dsn, sqlstore.Options{})
			// Key order and age are not the same.
			storetest.PutMany(t, 200, func(i int) (*sqlstore.Entry, error) {
				return writeEvent(t.Context(), store, fmt.Sprintf("event-%03d", 200-i), "")
			})
			young := later(t, store, newest(t, store), "event-150")
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			store = storetest.Open(t, dsn, sqlstore.Options{})
			defer store.Close()
			x := following(t, store, time.Hour, 200)
			x.expire(t.Context(), time.UnixMilli(young.At).Add(time.Hour))
			if n := countEvents(t, store); n != 1 || store.Get(young.Key) == nil {
				t.Errorf("%d events are left", n)
			}
		})
	}
}

func newest(t *testing.T, store *sqlstore.Store) (e *sqlstore.Entry) {
	t.Helper()
	from, to := changelog.RangeOf(eventPrefix)
	err := store.Current(eventPrefix).Scan(t.Context(), from, to, func(next *sqlstore.Entry) bool {
		if e == nil || next.Revision > e.Revision {
			e = next
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func countEvents(t testing.TB, store *sqlstore.Store) int64 {
	t.Helper()
	from, to := changelog.RangeOf(eventPrefix)
	n, err := store.Current(eventPrefix).Count(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestExpireRuns lets events expire by the real clock while others are written. All replicas of
// the dialect delete them at the same time.
func TestExpireRuns(t *testing.T) {
	for _, d := range logtest.Dialects {
		t.Run(d.Name, func(t *testing.T) {
			dsn := d.Fresh(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var running sync.WaitGroup
			var store *sqlstore.Store
			for range d.Servers {
				s := storetest.Open(t, dsn, sqlstore.Options{})
				store = s
				defer s.Close()
				running.Go(func() { expireEvents(ctx, s, 100*time.Millisecond, slog.New(slog.NewTextHandler(t.Output(), nil))) })
			}
			storetest.PutMany(t, 300, func(i int) (*sqlstore.Entry, error) {
				return writeEvent(t.Context(), store, fmt.Sprint("event-", i), "")
			})
			for begun := time.Now(); countEvents(t, store) > 0; time.Sleep(5 * time.Millisecond) {
				if time.Since(begun) > 2*time.Minute {
					t.Fatalf("%d events are left", countEvents(t, store))
				}
			}
			cancel()
			running.Wait()
		})
	}
}

// BenchmarkExpire deletes a thousand expired events in a database with many or no other objects.
func BenchmarkExpire(b *testing.B) {
	for _, others := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			store := storetest.Open(b, "sqlite://"+filepath.Join(b.TempDir(), "plinth.db")+"?durability=off", sqlstore.Options{})
			defer store.Close()
			storetest.PutMany(b, others, func(i int) (*sqlstore.Entry, error) {
				return writeSettings(b.Context(), store, fmt.Sprint("c", i))
			})
			for b.Loop() {
				b.StopTimer()
				storetest.PutMany(b, 1000, func(i int) (*sqlstore.Entry, error) {
					return writeEvent(b.Context(), store, fmt.Sprint("e", i), "")
				})
				b.StartTimer()
				x := &expiry{store: store, ttl: time.Hour, added: make(chan struct{}, 1)}
				ctx, cancel := context.WithCancel(b.Context())
				var done sync.WaitGroup
				done.Go(func() { _ = x.follow(ctx) })
				<-x.added
				x.expire(ctx, time.Now().Add(2*time.Hour))
				cancel()
				done.Wait()
				if n := countEvents(b, store); n != 0 {
					b.Fatalf("%d events are left", n)
				}
			}
		})
	}
}
