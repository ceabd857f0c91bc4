package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLender has readers borrow at random, as many of each as there are, and looks at what they have together.
func TestLender(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lender{all: 100}
		var mu sync.Mutex
		have, by := 0, map[string]int{}
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				who := fmt.Sprint(i % 5)
				r := rand.New(rand.NewPCG(uint64(i), 1))
				for range 20 {
					bytes, err := l.take(t.Context(), who, 1+r.IntN(80))
					if errors.Is(err, ErrBusy) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					have, by[who] = have+bytes, by[who]+bytes
					if have > 100 || by[who] > 50 {
						t.Errorf("%d lent, %d to one", have, by[who])
					}
					mu.Unlock()
					time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
					mu.Lock()
					have, by[who] = have-bytes, by[who]-bytes
					mu.Unlock()
					l.put(who, bytes)
				}
			})
		}
		all.Wait()
		if l.lent != 0 || len(l.by) != 0 || len(l.waiting) != 0 {
			t.Errorf("%d lent, %v, %d wait", l.lent, l.by, len(l.waiting))
		}
	})
}

// TestLenderFull: one who keeps what he has borrowed is in the way of himself alone, and nobody waits for ever.
func TestLenderFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lender{all: 100}
		take := func(ctx context.Context, who string, bytes int) error { _, err := l.take(ctx, who, bytes); return err }
		for range 2 {
			if err := take(t.Context(), "slow", 25); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		var slow sync.WaitGroup
		slow.Go(func() {
			if err := take(t.Context(), "slow", 1); !errors.Is(err, ErrBusy) || time.Since(begun) != lendWait {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		slow.Go(func() {
			if err := take(ctx, "slow", 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := take(t.Context(), "other", 1000); err != nil || l.lent != 100 || time.Since(begun) != 0 {
			t.Errorf("%d lent after %v, %v", l.lent, time.Since(begun), err)
		}
		slow.Wait()
		if len(l.waiting) != 0 {
			t.Errorf("%d wait", len(l.waiting))
		}
	})
}
