package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"
)

func TestRoom(t *testing.T) {
	for name, c := range map[string]struct{ now, live, counted, want int64 }{
		"there is enough":                 {400, 500, 300, 400},
		"between the bounds":              {200, 600, 200, 200},
		"too much":                        {400, 800, 350, 250},
		"less was used than there is for": {400, 750, 100, 50},
		"a part of the plan stays":        {400, 2000, 350, 25},
		"more again":                      {100, 450, 100, 150},
		"not more than the plan":          {390, 100, 390, 400},
	} {
		r := room{limit: 1000, plan: 400, now: c.now}
		if got := r.next(c.live, c.counted); got != c.want {
			t.Errorf("%s: room for %d, not for %d", name, got, c.want)
		}
	}
}

// TestFitIn has something live on the heap that takes twice what is counted.
func TestFitIn(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	_, base := collected()
	const plan = 40 * mib
	debug.SetMemoryLimit(int64(base) + 100*mib)
	var blocks [][]byte // of a MiB each
	var counted, room atomic.Int64
	room.Store(plan)
	for range 2 * plan / mib {
		blocks = append(blocks, make([]byte, mib))
	}
	counted.Store(plan)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		FitIn(ctx, plan, counted.Load, func(bytes int64) { room.Store(bytes) })
	}()
	for begun := time.Now(); ; time.Sleep(roomEvery) {
		runtime.GC()
		if fit := int(2 * room.Load() / mib); fit < len(blocks) {
			clear(blocks[fit:])
			blocks = blocks[:fit]
			counted.Store(room.Load())
		}
		if _, live := collected(); float64(live) <= mostLive*float64(InForce()) {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("there is room for %d MiB still", room.Load()/mib)
		}
	}
	if len(blocks) == 0 {
		t.Error("nothing was left")
	}
	runtime.KeepAlive(blocks)
	stop()
	<-ended
}
