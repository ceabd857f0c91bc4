package measure

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestClosedLoop(t *testing.T) {
	var running, most atomic.Int64
	l, err := ClosedLoop(context.Background(), 3, 30*time.Millisecond, func(context.Context, int) error {
		most.Store(max(most.Load(), running.Add(1)))
		time.Sleep(time.Millisecond)
		running.Add(-1)
		return nil
	})
	if err != nil || l.Ops != len(l.Samples) || l.Ops < 3 || l.Took < 30*time.Millisecond || most.Load() > 3 {
		t.Errorf("%d operations in %v, at most %d at once, %v", l.Ops, l.Took, most.Load(), err)
	}
	broken := errors.New("broken")
	_, err = ClosedLoop(context.Background(), 4, time.Hour, func(ctx context.Context, worker int) error {
		if worker == 2 {
			return broken
		}
		return ctx.Err()
	})
	if !errors.Is(err, broken) {
		t.Errorf("error of a worker: %v", err)
	}
}

func TestEach(t *testing.T) {
	var seen [10]atomic.Int64
	if _, err := Each(context.Background(), 4, len(seen), func(_ context.Context, i int) error {
		seen[i].Add(1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range seen {
		if seen[i].Load() != 1 {
			t.Errorf("%d was done %d times", i, seen[i].Load())
		}
	}
}
