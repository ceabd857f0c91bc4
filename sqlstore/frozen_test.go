package sqlstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	. "github.com/plinth-io/plinth/sqlstore"
)

func TestFrozenPostgres(t *testing.T) { testFrozen(t, logtest.StartPostgres(t)) }
func TestFrozenMariaDB(t *testing.T)  { testFrozen(t, logtest.StartMariaDB(t)) }

// testFrozen freezes the database under writers: it takes connections and answers
// nothing. The store must notice, refuse what it can no longer know, and go on by itself
// afterwards with all that it acknowledged.
func testFrozen(t *testing.T, server *dbserver.Server) {
	t.Parallel()
	s := openStore(t, newFaultyLog(t, logtest.CreateDatabase(t, server)), Options{QueryTimeout: time.Second, AppendTimeout: 2 * time.Second})
	w, err := s.Watch(maps, maps, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	first := create(t, s, maps+"ns/first")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	told := make([]map[string]error, 4)
	for i := range told {
		told[i] = map[string]error{}
		wg.Go(func() { createUntil(ctx, s, i, told[i]) })
	}
	time.Sleep(200 * time.Millisecond)
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	expectFrozen(t, s)
	if s.Get(first.Key) != first {
		t.Error("reads from memory stopped with the database")
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	for s.Healthy() != nil {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	stop()
	wg.Wait()
	if err := commitSoon(s, maps+"ns/last"); err != nil {
		t.Error(err)
	}
	if _, err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, ev := range poll(t, w, s.Revision()) {
		seen[ev.Entry.Key]++
	}
	if acknowledged, _ := compareTold(t, told, seen); acknowledged == 0 {
		t.Error("nothing was written")
	}
}

// expectFrozen looks at a store whose database hangs. No call is given a time of its
// own, so that only the store's bounds can end it, but for one that is shorter.
func expectFrozen(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.Sync(context.Background()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("sync: %v, want ErrUnavailable", err)
	}
	if err := s.Healthy(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("healthy: %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Sync(ctx); !errors.Is(err, ErrUnavailable) {
		t.Errorf("sync of somebody impatient: %v, want ErrUnavailable", err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Commit(ctx, Change{Key: maps + "ns/late", Value: value("late", 0)})
	if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknown) {
		t.Errorf("commit of somebody impatient: %v, want ErrUnavailable or ErrUnknown", err)
	}
}

// TestFrozenIdle freezes a database that nobody uses: the store finds out by itself, and
// a write is then refused with a known outcome.
func TestFrozenIdle(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			s := openStore(t, newFaultyLog(t, logtest.CreateDatabase(t, server)), Options{QueryTimeout: time.Second, AppendTimeout: 2 * time.Second})
			create(t, s, maps+"ns/a")
			if err := server.Freeze(); err != nil {
				t.Fatal(err)
			}
			for s.Healthy() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			if _, err := s.Commit(context.Background(), Change{Key: maps + "ns/b", Value: value("b", 0)}); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown) {
				t.Errorf("commit: %v, want ErrUnavailable", err)
			}
			if err := server.Thaw(); err != nil {
				t.Fatal(err)
			}
			for s.Healthy() != nil {
				time.Sleep(5 * time.Millisecond)
			}
			if _, err := s.Sync(context.Background()); err != nil || s.Get(maps+"ns/b") != nil {
				t.Errorf("a refused write is there: %v, %v", s.Get(maps+"ns/b"), err)
			}
			if err := commitSoon(s, maps+"ns/b"); err != nil {
				t.Error(err)
			}
		})
	}
}

// commitSoon creates key, patiently: a busy machine may exceed the short bounds here.
func commitSoon(s *Store, key string) (err error) {
	for range 20 {
		if _, err = s.Commit(context.Background(), Change{Key: key, Value: value(key, 0)}); !errors.Is(err, ErrUnavailable) {
			return err
		}
	}
	return err
}
