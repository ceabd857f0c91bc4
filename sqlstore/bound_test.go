package sqlstore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestFrozenPostgres(t *testing.T) { testFrozen(t, logtest.StartPostgres(t)) }
func TestFrozenMariaDB(t *testing.T)  { testFrozen(t, logtest.StartMariaDB(t)) }

// bounded has bounds that a busy machine does not exceed before the database hangs.
var bounded = Options{QueryTimeout: 15 * time.Second, AppendTimeout: 15 * time.Second}

// testFrozen freezes the database under writers: it takes connections and answers
// nothing. The store must notice, refuse what it can no longer know, and go on by itself
// afterwards with all that it acknowledged.
func testFrozen(t *testing.T, server *dbserver.Server) {
	t.Parallel()
	s := openStore(t, newFaultyLog(t, logtest.CreateDatabase(t, server)), bounded)
	w, err := s.Watch(maps, maps, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	first := create(t, s, maps+"ns/first")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	var refusals atomic.Int64
	told := make([]map[string]error, 4)
	for i := range told {
		told[i] = map[string]error{}
		wg.Go(func() { createUntil(ctx, s, i, told[i], &refusals) })
	}
	awaitWrites(s)
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
	awaitWrites(s)
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

// expectFrozen checks a store whose database hangs. All calls but one have no deadline, so
// that only the store's bounds can end them; that one has a deadline before these bounds.
func expectFrozen(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.Sync(context.Background()); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("sync: %v, want ErrUnavailable", err)
	}
	if err := s.Healthy(); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("healthy: %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Sync(ctx); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("sync of somebody impatient: %v, want ErrUnavailable", err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Commit(ctx, Change{Key: maps + "ns/late", Value: value("late", 0)})
	if !errors.Is(err, changelog.ErrUnavailable) && !errors.Is(err, changelog.ErrUnknown) {
		t.Errorf("commit of somebody impatient: %v, want ErrUnavailable or ErrUnknown", err)
	}
}

// TestFrozenIdle freezes a database while the store is idle: the store notices by itself, and
// a write is then refused with a known outcome.
func TestFrozenIdle(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			s := openStore(t, newFaultyLog(t, logtest.CreateDatabase(t, server)), bounded)
			create(t, s, maps+"ns/a")
			if err := server.Freeze(); err != nil {
				t.Fatal(err)
			}
			for s.Healthy() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			if _, err := s.Commit(context.Background(), Change{Key: maps + "ns/b", Value: value("b", 0)}); !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrUnknown) {
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
		if _, err = s.Commit(context.Background(), Change{Key: key, Value: value(key, 0)}); !errors.Is(err, changelog.ErrUnavailable) {
			return err
		}
	}
	return err
}

// In TestDatabaseHangs no caller has a deadline. The first transaction that hangs is given up
// before COMMIT, so its outcome is known.
func TestDatabaseHangs(t *testing.T) {
	t.Parallel()
	log := newFaultyLog(t, fileDSN(t))
	log.shared = true
	s := openStore(t, log, bounded)
	log.hangs.Store(true)
	b := Change{Key: maps + "ns/b", Value: value("b", 0)}
	_, err := s.Commit(context.Background(), b)
	if !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrUnknown) || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Sync(context.Background()); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("sync: %v", err)
	}
	if err := s.Healthy(); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("healthy: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := s.Commit(ctx, b); !errors.Is(err, changelog.ErrUnavailable) && !errors.Is(err, changelog.ErrUnknown) {
		t.Errorf("commit of somebody impatient: %v", err)
	}
	log.hangs.Store(false)
	for s.Healthy() != nil {
		time.Sleep(5 * time.Millisecond)
	}
	if err := commitSoon(s, maps+"ns/c"); err != nil {
		t.Error(err)
	}
}
