package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestDatabaseAway(t *testing.T) {
	log := newFaultyLog(t, fileDSN(t))
	log.shared = true
	s := openStore(t, log, Options{})
	a := create(t, s, maps+"ns/a")
	log.away.Store(true)
	if _, err := s.Commit(t.Context(), Change{Key: maps + "ns/b", Value: value("b", 0)}); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Sync(t.Context()); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("sync: %v", err)
	}
	if err := s.Healthy(); !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("healthy: %v", err)
	}
	if s.Get(a.Key) != a {
		t.Error("reads stopped")
	}
	for log.probes.Load() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	log.away.Store(false)
	for s.Healthy() != nil { // it finds out by itself
		time.Sleep(10 * time.Millisecond)
	}
	create(t, s, maps+"ns/b")
	if r, err := s.Sync(t.Context()); err != nil || r != s.Revision() {
		t.Errorf("sync: %d, %v", r, err)
	}
}

// TestFaultsUnderLoad makes commits fail in all ways while writers go on. What was
// acknowledged must be there, and watchers see every row of the log once.
func TestFaultsUnderLoad(t *testing.T) {
	s, log := newFaultyStore(t, Options{WindowBytes: 20000, MaxBatch: 8})
	w, err := s.Watch(maps, maps, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := rand.New(rand.NewPCG(5, 5))
	log.set(func([]changelog.Change) fault { return []fault{works, works, works, lost, persisted}[r.IntN(5)] })

	var mu sync.Mutex
	known := map[string]*Entry{} // by key; each is created at most once
	unknown := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				key := fmt.Sprintf("%sns/%d-%d", maps, i, j)
				e, err := s.Commit(context.Background(), Change{Key: key, Value: value(key, j)})
				mu.Lock()
				switch {
				case err == nil:
					known[key] = e
				case errors.Is(err, changelog.ErrUnknown):
					unknown[key] = true
				case !errors.Is(err, changelog.ErrUnavailable):
					t.Errorf("commit: %v", err)
				}
				mu.Unlock()
			}
		})
	}
	for range 5 {
		time.Sleep(10 * time.Millisecond)
		log.away.Store(true)
		time.Sleep(5 * time.Millisecond)
		log.away.Store(false)
	}
	wg.Wait()
	log.set(nil)
	if _, err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int64{}
	for _, ev := range poll(t, w, s.Revision()) {
		if seen[ev.Entry.Key] != 0 {
			t.Errorf("%s was seen at %d and at %d", ev.Entry.Key, seen[ev.Entry.Key], ev.Entry.Revision)
		}
		seen[ev.Entry.Key] = ev.Entry.Revision
	}
	for key, e := range known {
		if seen[key] != e.Revision {
			t.Errorf("%s was acknowledged at %d and seen at %d", key, e.Revision, seen[key])
		}
	}
	for key := range seen {
		if known[key] == nil && !unknown[key] {
			t.Errorf("%s was refused and is there", key)
		}
	}
	t.Logf("%d acknowledged, %d unknown, %d there", len(known), len(unknown), len(seen))
}
