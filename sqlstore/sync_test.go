package sqlstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
)

// TestSharedHead has many readers wait for the newest state at once. They share the question to the
// database that begins after they came.
func TestSharedHead(t *testing.T) {
	a, b, _, logB := newReplicas(t, false)
	create(t, a, maps+"ns/a")
	before := b.Stats().HeadReads
	gate := make(chan struct{})
	logB.headGate.Store(&gate)
	var wg sync.WaitGroup
	var begun sync.WaitGroup
	const readers = 50
	sync1 := func() {
		begun.Done()
		if r, err := b.Sync(t.Context()); err != nil || r < 1 {
			t.Errorf("sync: %d, %v", r, err)
		}
	}
	begun.Add(1)
	wg.Go(sync1)
	for b.Stats().HeadReads == before { // the first question is on its way
		time.Sleep(time.Millisecond)
	}
	begun.Add(readers)
	for range readers {
		wg.Go(sync1)
	}
	begun.Wait()
	time.Sleep(20 * time.Millisecond) // a reader that has not asked by then makes a question more, at most
	logB.headGate.Store(nil)
	close(gate)
	wg.Wait()
	if asked := b.Stats().HeadReads - before; asked > 4 {
		t.Errorf("%d questions for %d readers", asked, readers+1)
	}
}

// TestReadYourWritesElsewhere checks that whatever one replica acknowledged is seen on
// another after Sync, however fast one follows the other.
func TestReadYourWritesElsewhere(t *testing.T) {
	a, b, _, _ := newReplicas(t, false)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			stores := []*Store{a, b}
			for j := range 60 {
				key := fmt.Sprintf("%sns/%d-%d", maps, i, j)
				create(t, stores[j%2], key)
				if _, err := stores[1-j%2].Sync(t.Context()); err != nil {
					t.Error(err)
				}
				if stores[1-j%2].Get(key) == nil {
					t.Errorf("%s is not on the other replica after Sync", key)
				}
			}
		})
	}
	wg.Wait()
}
