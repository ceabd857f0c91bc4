package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

func TestDue(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		what   string
		waits  []time.Duration
		passed time.Duration
		wait   time.Duration
		due    bool
	}{
		{"nothing", nil, 0, 0, false},
		{"a change that does not wait", []time.Duration{0}, 0, 0, true},
		{"a negative wait", []time.Duration{-s}, 0, 0, true},
		{"one that waits", []time.Duration{3 * s}, s, 2 * s, false},
		{"its time has come", []time.Duration{3 * s}, 3 * s, 0, true},
		{"two that wait, the second for less", []time.Duration{3 * s, 2 * s}, s, s, false},
		{"the second's time has come", []time.Duration{3 * s, 2 * s}, 2 * s, 0, true},
		{"one that waits and one that does not", []time.Duration{3 * s, 0}, 0, 0, true},
		{"a full batch", []time.Duration{3 * s, 3 * s, 3 * s, 3 * s}, 0, 0, true},
	} {
		if wait, due := Due(4, c.waits, c.passed); wait != c.wait || due != c.due {
			t.Errorf("%s: %v, %v; want %v, %v", c.what, wait, due, c.wait, c.due)
		}
	}
}

// waiting commits changes of new keys that may wait, from goroutines of their own, and returns when all
// are in the queue. The channel gets their errors.
func waiting(ctx context.Context, t *testing.T, s *Store, n int, wait time.Duration) <-chan error {
	t.Helper()
	done := make(chan error, n)
	before := s.Queued()
	for i := range n {
		key := fmt.Sprintf("%sns/waits-%d", maps, i)
		go func() {
			_, err := s.Commit(ctx, Change{Key: key, Value: value(key, i), MayWait: wait})
			done <- err
		}()
	}
	waitFor(t, "all changes are in the queue", func() bool { return s.Queued() == before+n })
	return done
}

func allDone(t *testing.T, done <-chan error, n int) {
	t.Helper()
	for range n {
		if err := <-done; err != nil {
			t.Errorf("a change that waited: %v", err)
		}
	}
}

// TestCompany has a change that does not wait take along those that do, in its transaction.
func TestCompany(t *testing.T) {
	s := newStore(t, Options{})
	done := waiting(t.Context(), t, s, 50, time.Hour)
	before := s.Stats()
	create(t, s, maps+"ns/at-once")
	allDone(t, done, 50)
	after := s.Stats()
	if n := after.Batches - before.Batches; n != 1 {
		t.Errorf("%d transactions", n)
	}
	if n := after.Changes - before.Changes; n != 51 {
		t.Errorf("%d changes", n)
	}
}

// TestCompanyOfTheSameKey has a change of a key come after one of the same key that waits.
func TestCompanyOfTheSameKey(t *testing.T) {
	s := newStore(t, Options{})
	key := maps + "ns/a"
	first := create(t, s, key)
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit(t.Context(), Change{Key: key, Expect: first.Revision, Value: value(key, 1), MayWait: time.Hour})
		done <- err
	}()
	waitFor(t, "the change is in the queue", func() bool { return s.Queued() == 1 })
	_, err := s.Commit(t.Context(), Change{Key: key, Expect: first.Revision, Value: value(key, 2)})
	if conflict := (*ConflictError)(nil); !errors.As(err, &conflict) {
		t.Errorf("the second change: %v, want a conflict", err)
	}
	allDone(t, done, 1)
}

// TestWaitEnds has nobody come.
func TestWaitEnds(t *testing.T) {
	s := newStore(t, Options{})
	key := maps + "ns/a"
	begun := time.Now()
	if _, err := s.Commit(t.Context(), Change{Key: key, Value: value(key, 1), MayWait: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 50*time.Millisecond {
		t.Errorf("the change waited for %v", took)
	}
}

// TestWaitOfCaller has a caller who gives up long before the change's time.
func TestWaitOfCaller(t *testing.T) {
	s := newStore(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	key := maps + "ns/a"
	begun := time.Now()
	if got, want := Latest(ctx, time.Hour, begun), begun.Add(200*time.Second); got.Sub(want).Abs() > time.Minute {
		t.Errorf("a change whose caller has ten minutes may wait for %v", got.Sub(begun))
	}
	ended, end := context.WithDeadline(t.Context(), begun.Add(-time.Second))
	defer end()
	if got := Latest(ended, time.Hour, begun); !got.IsZero() {
		t.Errorf("a change whose caller has gone may wait for %v", got.Sub(begun))
	}
	done := waiting(ctx, t, s, 1, time.Hour)
	cancel()
	if err := <-done; err == nil || s.Get(key) != nil {
		t.Errorf("the change of a caller who has gone: %v", err)
	}
}

// TestCloseHurries has a Store end while changes wait: they are written.
func TestCloseHurries(t *testing.T) {
	for what, end := range map[string]func(*Store){
		"close": func(s *Store) { _ = s.Close() },
		"hurry": (*Store).Hurry,
	} {
		t.Run(what, func(t *testing.T) {
			s, err := object.Open(t.Context(), openLog(t, fileDSN(t)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			done := waiting(t.Context(), t, s, 20, time.Hour)
			var ending sync.WaitGroup
			ending.Go(func() { end(s) })
			allDone(t, done, 20)
			ending.Wait()
		})
	}
}

// TestOutageWhileWaiting has the database go away while changes wait: they are refused like others, and
// nothing of them is written.
func TestOutageWhileWaiting(t *testing.T) {
	s, log := newFaultyStore(t, Options{})
	done := waiting(t.Context(), t, s, 5, time.Hour)
	log.away.Store(true)
	key := maps + "ns/at-once"
	if _, err := s.Commit(t.Context(), Change{Key: key, Value: value(key, 1)}); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("a change without the database: %v", err)
	}
	for range 5 {
		if err := <-done; !errors.Is(err, changelog.ErrUnavailable) {
			t.Errorf("a change that waited: %v", err)
		}
	}
	log.away.Store(false)
}
