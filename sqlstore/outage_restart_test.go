package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestRestartOfPostgres(t *testing.T) { testRestart(t, logtest.StartPostgres(t)) }
func TestRestartOfMariaDB(t *testing.T)  { testRestart(t, logtest.StartMariaDB(t)) }

// testRestart stops and kills the database under writers. The store must recover by
// itself, keep what it acknowledged, and show its watchers each row once.
func testRestart(t *testing.T, server *dbserver.Server) {
	s := openStore(t, newFaultyLog(t, logtest.CreateDatabase(t, server)), Options{WindowBytes: 20000})
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
	for _, end := range []func(){server.Stop, server.Kill} {
		awaitWrites(s)
		before := refusals.Load()
		end()
		for s.Healthy() == nil || refusals.Load() == before {
			time.Sleep(5 * time.Millisecond)
		}
		if s.Get(first.Key) != first {
			t.Error("reads stopped with the database")
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		for s.Healthy() != nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
	awaitWrites(s)
	stop()
	wg.Wait()
	if _, err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, ev := range poll(t, w, s.Revision()) {
		seen[ev.Entry.Key]++
	}
	if acknowledged, refused := compareTold(t, told, seen); acknowledged == 0 || refused == 0 {
		t.Error("the database was not away")
	}
}

// awaitWrites returns when writers have been told of more writes.
func awaitWrites(s *Store) {
	for begun := s.Revision(); s.Revision() < begun+20; {
		time.Sleep(5 * time.Millisecond)
	}
}

// createUntil creates objects until ctx ends, notes what it was told of each, and counts refusals.
func createUntil(ctx context.Context, s *Store, writer int, told map[string]error, refusals *atomic.Int64) {
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("%sns/%d-%d", maps, writer, i)
		_, err := s.Commit(context.Background(), Change{Key: key, Value: value(key, i)})
		told[key] = err
		if errors.Is(err, changelog.ErrUnavailable) {
			refusals.Add(1)
		}
		if err != nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// compareTold compares what writers were told with what a watcher saw.
func compareTold(t *testing.T, told []map[string]error, seen map[string]int) (acknowledged, refused int) {
	t.Helper()
	unknown := 0
	for _, m := range told {
		for key, err := range m {
			n := seen[key]
			switch {
			case err == nil && n == 1:
				acknowledged++
			case errors.Is(err, changelog.ErrUnknown) && n <= 1:
				unknown++
			case errors.Is(err, changelog.ErrUnavailable) && n == 0:
				refused++
			default:
				t.Errorf("%s was seen %d times, its writer was told %v", key, n, err)
			}
		}
	}
	t.Logf("%d acknowledged, %d unknown, %d refused", acknowledged, unknown, refused)
	return acknowledged, refused
}
