package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

const (
	pods = "/registry/core/pods/"
	maps = "/registry/core/configmaps/"
)

func openLog(t testing.TB, dsn string) changelog.Log {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func fileDSN(t testing.TB) string {
	return "sqlite://" + filepath.Join(t.TempDir(), "p.db") + "?durability=off"
}

// openStore opens a Store on log and checks at the end of the test that it agrees with
// the log in everything.
func openStore(t testing.TB, log changelog.Log, o Options) *Store {
	t.Helper()
	if o.History == 0 {
		o.History = -1
	}
	s, err := object.Open(t.Context(), log, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		checkInvariants(t, s, log)
		if b := s.LastSetBack(); b != nil {
			t.Errorf("the database counts as set back: %+v", b)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newStore(t testing.TB, o Options) *Store {
	return openStore(t, newFaultyLog(t, fileDSN(t)), o)
}

func value(key string, n int) []byte {
	name := key[strings.LastIndexByte(key, '/')+1:]
	return fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q},"data":{"n":"%d"}}`, name, n)
}

func commit(t testing.TB, s *Store, c Change) *Entry {
	t.Helper()
	e, err := s.Commit(context.Background(), c)
	if err != nil {
		t.Fatalf("commit %s: %v", c.Key, err)
	}
	return e
}

func create(t testing.TB, s *Store, key string) *Entry {
	return commit(t, s, Change{Key: key, Value: value(key, 0)})
}

// poll polls w until it has delivered everything through revision.
func poll(t testing.TB, w *Watcher, revision int64) (events []*Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		more, through, err := w.Poll(ctx)
		if err != nil {
			t.Fatalf("poll: %v", err)
		}
		events = append(events, more...)
		if through >= revision {
			return events
		}
		select {
		case <-w.Wait():
		case <-time.After(time.Millisecond): // through grows without news too
		}
		if ctx.Err() != nil {
			t.Fatalf("watcher is at %d, wanted %d", through, revision)
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s, err := object.Open(t.Context(), openLog(t, fileDSN(t)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := create(t, s, maps+"ns/a")
	w, err := s.Watch(maps, maps, a.Revision)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- s.Wait(context.Background(), a.Revision+1) }()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	<-w.Wait()
	if _, _, err := w.Poll(t.Context()); !errors.Is(err, changelog.ErrClosed) {
		t.Errorf("poll: %v", err)
	}
	if err := <-waiting; !errors.Is(err, changelog.ErrClosed) {
		t.Errorf("wait: %v", err)
	}
	if _, err := s.Commit(t.Context(), Change{Key: maps + "b"}); !errors.Is(err, changelog.ErrClosed) {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Watch(maps, maps, a.Revision); !errors.Is(err, changelog.ErrClosed) {
		t.Errorf("watch: %v", err)
	}
	w.Close()
	w.Close()
}

func TestReopen(t *testing.T) {
	dsn := fileDSN(t)
	s, err := object.Open(t.Context(), openLog(t, dsn), Options{History: -1})
	if err != nil {
		t.Fatal(err)
	}
	first := create(t, s, maps+"ns/a")
	for i := range 200 {
		create(t, s, fmt.Sprintf("%sns/%d", pods, i))
	}
	last := s.Revision()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, openLog(t, dsn), Options{})
	if s.Revision() != last {
		t.Fatalf("opened at %d, closed at %d", s.Revision(), last)
	}
	if e := s.Get(first.Key); e == nil || e.Revision != first.Revision || string(e.Value) != string(first.Value) {
		t.Fatalf("after reopening: %+v", e)
	}
	// A watch from before the restart goes on where it was.
	w, err := s.Watch(pods, pods, first.Revision)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if events := poll(t, w, last); len(events) != 200 {
		t.Fatalf("%d events, want 200", len(events))
	}
}

func TestCloseFinishesQueuedCommits(t *testing.T) {
	dsn := fileDSN(t)
	log := newFaultyLog(t, dsn)
	s, err := object.Open(t.Context(), log, Options{MaxBatch: 3})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var keys []string
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			key := fmt.Sprintf("%sns/%d", maps, i)
			_, err := s.Commit(context.Background(), Change{Key: key, Value: value(key, 0)})
			if err == nil {
				mu.Lock()
				keys = append(keys, key)
				mu.Unlock()
			} else if !errors.Is(err, changelog.ErrClosed) {
				t.Errorf("commit: %v", err)
			}
		})
	}
	time.Sleep(time.Millisecond)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	s = openStore(t, openLog(t, dsn), Options{})
	for _, key := range keys {
		if s.Get(key) == nil {
			t.Errorf("%s was acknowledged and is gone", key)
		}
	}
}
