package memory

import (
	"context"
	"runtime/metrics"
	"time"
)

// Shares of the limit that live objects on the heap may take. Between them nothing changes. Beyond the upper one the
// collector would run so often that requests become slow.
const (
	mostLive  = 0.7
	leastLive = 0.55
	// leastRoom is the part of a plan that there is always room for.
	leastRoom = 16
)

// room is how many bytes of a plan there is room for: something whose size is counted, and which takes more than is
// counted.
type room struct {
	limit int64 // of the process
	plan  int64
	now   int64
}

// next returns how much room there is when live bytes have survived a collection, and counted bytes of the plan are used.
func (r *room) next(live, counted int64) int64 {
	most, least := int64(mostLive*float64(r.limit)), int64(leastLive*float64(r.limit))
	switch {
	case live > most:
		r.now = max(min(r.now, counted)-(live-most), r.plan/leastRoom)
	case live < least:
		r.now = min(r.now+(least-live)/2, r.plan)
	}
	return r.now
}

// roomEvery is between two looks at the figures of the collector.
const roomEvery = 250 * time.Millisecond

// FitIn adapts what is planned to take plan bytes to what the last collection has found: after each it
// calls set with the bytes that there is room for beside everything else, within the limit of the process that is in force.
// counted returns the bytes in use. It returns when ctx ends.
func FitIn(ctx context.Context, plan int64, counted func() int64, set func(bytes int64)) {
	r := room{limit: InForce(), plan: plan, now: plan}
	if r.limit == 0 {
		return
	}
	look := time.NewTicker(roomEvery)
	defer look.Stop()
	for last := uint64(0); ; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		cycle, live := collected()
		if cycle == last {
			continue
		}
		last = cycle
		if before := r.now; r.next(int64(live), counted()) != before {
			set(r.now)
		}
	}
}

// collected returns how many collections there were, and what was live at the end of the last.
func collected() (cycles, live uint64) {
	samples := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}
