package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestPagesUnderWrites reads lists page by page, kept and from the log, while the
// resource changes and the past is compacted.
func TestPagesUnderWrites(t *testing.T) {
	s := newStore(t, Options{Snapshots: 2})
	for i := range 500 {
		create(t, s, fmt.Sprintf("%sns%d/%03d", maps, i%3, i))
	}
	ctx, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() {
		for seed := uint64(0); ctx.Err() == nil; seed++ {
			writeRandomly(t, s, seed, 20)
		}
	})
	var all atomic.Int64
	all.Store(math.MaxInt64)
	background.Go(func() { compactSometimes(ctx, t, s, &all) })
	var readers sync.WaitGroup
	for i := range 6 {
		readers.Go(func() {
			for range 8 {
				readPages(t, s, i%2 == 0)
			}
		})
	}
	readers.Wait()
	stop()
	background.Wait()
}

func readPages(t *testing.T, s *Store, keep bool) {
	first := s.Current(maps)
	if keep {
		s.Keep(first)
	}
	from, to := changelog.RangeOf(maps)
	want := revisions(t, first, from, to)
	got := map[string]int64{}
	for from != "" {
		view, err := s.At(context.Background(), maps, first.Revision())
		if errors.Is(err, changelog.ErrCompacted) {
			return
		}
		if err != nil {
			t.Errorf("page from %s: %v", from, err)
			return
		}
		if from, err = readPage(view, from, to, got); err != nil {
			if !errors.Is(err, changelog.ErrCompacted) {
				t.Errorf("page: %v", err)
			}
			return
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages at %d:\n%s", first.Revision(), diff)
	}
}

// readPage adds 50 entries to got and returns where the next page begins.
func readPage(view View, from, to string, got map[string]int64) (next string, err error) {
	n := 0
	err = view.Scan(context.Background(), from, to, func(e *Entry) bool {
		if n++; n > 50 {
			next = e.Key
			return false
		}
		got[e.Key] = e.Revision
		return true
	})
	return next, err
}
