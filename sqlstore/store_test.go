package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	. "github.com/plinth-io/plinth/sqlstore"
)

const (
	pods = "/registry/core/pods/"
	maps = "/registry/core/configmaps/"
)

func openLog(t testing.TB, dsn string) Log {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Logf: t.Logf})
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
func openStore(t testing.TB, log Log, o Options) *Store {
	t.Helper()
	if o.History == 0 {
		o.History = -1
	}
	s, err := Open(t.Context(), log, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		checkInvariants(t, s, log)
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
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
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

func TestCommitAndGet(t *testing.T) {
	s := newStore(t, Options{})
	a := create(t, s, maps+"ns/a")
	if got := s.Get(a.Key); got != a {
		t.Fatalf("got %v, want the entry that Commit returned", got)
	}
	if a.Revision != a.CreateRevision || !strings.Contains(string(a.JSON), fmt.Sprintf(`"resourceVersion":"%d"`, a.Revision)) {
		t.Fatalf("entry %+v %s", a, a.JSON)
	}
	b := commit(t, s, Change{Key: a.Key, Expect: a.Revision, Value: value(a.Key, 1)})
	if b.Revision <= a.Revision || b.CreateRevision != a.Revision {
		t.Fatalf("update of %+v made %+v", a, b)
	}
	gone := commit(t, s, Change{Key: a.Key, Expect: b.Revision, Delete: true, Value: value(a.Key, 1)})
	if s.Get(a.Key) != nil {
		t.Fatal("deleted key is still there")
	}
	if again := create(t, s, a.Key); again.CreateRevision != again.Revision || again.Revision <= gone.Revision {
		t.Fatalf("created again: %+v", again)
	}
}

func TestConflicts(t *testing.T) {
	s := newStore(t, Options{})
	a := create(t, s, maps+"ns/a")
	b := commit(t, s, Change{Key: a.Key, Expect: a.Revision, Value: value(a.Key, 1)})
	for _, c := range []Change{
		{Key: a.Key},                         // exists
		{Key: a.Key, Expect: a.Revision},     // replaced
		{Key: a.Key, Expect: b.Revision + 7}, // never was
	} {
		c.Value = value(a.Key, 2)
		_, err := s.Commit(context.Background(), c)
		var conflict *ConflictError
		if !errors.As(err, &conflict) || conflict.Current != b || conflict.Expect != c.Expect {
			t.Errorf("expecting %d: %v", c.Expect, err)
		}
	}
	_, err := s.Commit(context.Background(), Change{Key: maps + "ns/b", Expect: a.Revision, Value: value("b", 0)})
	var conflict *ConflictError
	if !errors.As(err, &conflict) || conflict.Current != nil {
		t.Errorf("update of an absent key: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	s := newStore(t, Options{MaxValueBytes: 2000})
	for _, key := range []string{
		"a",
		"/registry/core/pods",
		pods + "a\x00b",
		pods + "a\nb",
		pods + "a\xff",
		pods + strings.Repeat("日", 3000),
		pods + strings.Repeat("a", MaxKeyBytes-len(pods)+1),
	} {
		if _, err := s.Commit(context.Background(), Change{Key: key, Value: value(key, 0)}); !errors.Is(err, ErrKey) {
			t.Errorf("key of %d bytes: %v, want ErrKey", len(key), err)
		}
	}
	create(t, s, pods+strings.Repeat("a", MaxKeyBytes-len(pods)))
	create(t, s, pods+"\uFFFD")
	if _, err := s.Commit(context.Background(), Change{Key: pods + "a", Delete: true}); err == nil {
		t.Error("a delete that expects nothing was accepted")
	}
	_, err := s.Commit(context.Background(), Change{Key: pods + "a", Value: make([]byte, 2001)})
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s, err := Open(t.Context(), openLog(t, fileDSN(t)), Options{})
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
	if _, _, err := w.Poll(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("poll: %v", err)
	}
	if err := <-waiting; !errors.Is(err, ErrClosed) {
		t.Errorf("wait: %v", err)
	}
	if _, err := s.Commit(t.Context(), Change{Key: maps + "b"}); !errors.Is(err, ErrClosed) {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Watch(maps, maps, a.Revision); !errors.Is(err, ErrClosed) {
		t.Errorf("watch: %v", err)
	}
	w.Close()
	w.Close()
}

func TestReopen(t *testing.T) {
	dsn := fileDSN(t)
	s, err := Open(t.Context(), openLog(t, dsn), Options{History: -1})
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
	if e := s.Get(first.Key); e == nil || e.Revision != first.Revision || string(e.JSON) != string(first.JSON) {
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

func TestWaitAndSync(t *testing.T) {
	s := newStore(t, Options{})
	a := create(t, s, maps+"ns/a")
	if r, err := s.Sync(t.Context()); err != nil || r != a.Revision {
		t.Fatalf("sync: %d, %v", r, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.Wait(ctx, a.Revision+1); !errors.Is(err, ErrFuture) {
		t.Fatalf("wait for the future: %v", err)
	}
	done := make(chan error)
	go func() { done <- s.Wait(context.Background(), a.Revision+1) }()
	create(t, s, maps+"ns/b")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
