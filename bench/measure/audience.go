package measure

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// maxNumber bounds the numbers that watches believe.
const maxNumber = 1 << 30

// Event is one that a watch has got.
type Event struct {
	Known    bool // it is of a write that has a number
	Write    int  // that made the value, for a deletion the last one
	Sent     time.Time
	Revision int64
	Deleted  bool
}

// Watch is one watch of a resource, and what came.
type Watch struct {
	Resource uint8

	mu            sync.Mutex // guards all below
	puts, deletes marks
	got           int // different events
	again         int // events that came twice
	disorder      int // events of a revision that is not above the last one's
	foreign       int // events that are of no write
	last          int64
	samples       []time.Duration
	err           error
}

// Fail notes that the watch has failed.
func (w *Watch) Fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// Take notes an event.
func (w *Watch) Take(e Event, arrived time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	into := &w.puts
	if e.Deleted {
		into = &w.deletes
	}
	switch {
	case !e.Known || e.Write < 0 || e.Write > maxNumber:
		w.foreign++
		return
	case !into.add(e.Write):
		w.again++
		return
	case e.Revision <= w.last:
		w.disorder++
	}
	w.got++
	w.last = max(w.last, e.Revision)
	if !e.Deleted {
		w.samples = append(w.samples, arrived.Sub(e.Sent))
	}
}

// Audience is all watches of a measurement, and the writes that they have to see.
type Audience struct {
	Ledger  Ledger
	watches []*Watch
	cancel  context.CancelFunc
	ended   sync.WaitGroup
}

// NewAudience returns an audience without watches, and the context of those that follow.
func NewAudience(ctx context.Context) (*Audience, context.Context) {
	a := &Audience{}
	ctx, a.cancel = context.WithCancel(ctx)
	return a, ctx
}

// Seat adds a watch of what comes after a revision. follow receives its events until the audience ends.
func (a *Audience) Seat(resource uint8, after int64, follow func(*Watch)) {
	w := &Watch{Resource: resource, last: after}
	a.watches = append(a.watches, w)
	a.ended.Go(func() { follow(w) })
}

// End ends the watches.
func (a *Audience) End() {
	a.cancel()
	a.ended.Wait()
}

// Measure makes a number of puts of resource 0, waits for their events, and judges the watches.
func (a *Audience) Measure(ctx context.Context, puts, perSecond int, put func(ctx context.Context, n int) error) (v Verdict, err error) {
	defer a.End()
	if err := a.writeAtPace(ctx, puts, perSecond, put); err != nil {
		return v, err
	}
	a.settle(ctx)
	a.End()
	return a.Judge(), ctx.Err()
}

// writeAtPace starts each put at its time, even if earlier ones have not ended.
func (a *Audience) writeAtPace(ctx context.Context, puts, perSecond int, put func(ctx context.Context, n int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range puts {
		_ = sleep.Until(ctx, begun.Add(time.Duration(i)*time.Second/time.Duration(perSecond)))
		if ctx.Err() != nil {
			break
		}
		n := a.Ledger.Begin(0)
		wg.Go(func() {
			if err := put(ctx, n); err != nil {
				a.Ledger.Put(n, Unknown)
				cancel(err)
				return
			}
			a.Ledger.Put(n, Done)
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// settlePatience is how long no event may come until those that have not come count as lost.
const settlePatience = 30 * time.Second

// settle waits until all watches have all events.
func (a *Audience) settle(ctx context.Context) {
	came, since := -1, time.Now()
	for ctx.Err() == nil && time.Since(since) < settlePatience {
		got, missing := a.count()
		if !missing && !a.Ledger.doubtful() {
			return
		}
		if got != came {
			came, since = got, time.Now()
		} else if !missing && time.Since(since) > time.Second {
			return
		}
		_ = sleep.For(ctx, 5*time.Millisecond)
	}
}

// count returns how many events have come, and whether a watch that still runs has fewer than were
// acknowledged.
func (a *Audience) count() (got int, missing bool) {
	for _, w := range a.watches {
		w.mu.Lock()
		got += w.got
		missing = missing || w.err == nil && w.got < a.Ledger.expected(w.Resource)
		w.mu.Unlock()
	}
	return got, missing
}

// Verdict is what the watches of a measurement got.
type Verdict struct {
	Expected, lost, again, disorder, strange int
	delays                                   []time.Duration
	err                                      error // of the first watch that failed
}

// Judge compares what came with what was written. The audience has ended.
func (a *Audience) Judge() (v Verdict) {
	for _, w := range a.watches {
		lost, strange := a.Ledger.audit(w)
		v.Expected += a.Ledger.expected(w.Resource)
		v.lost += lost
		v.strange += strange + w.foreign
		v.again += w.again
		v.disorder += w.disorder
		v.delays = append(v.delays, w.samples...)
		if v.err == nil {
			v.err = w.err
		}
	}
	return v
}

// NoFaults is the target of rows that count what may not happen.
var NoFaults = []figures.Target{{Bound: figures.AtMost(0)}}

// FaultsRow is the row of Faults.
func FaultsRow() *figures.Row {
	return &figures.Row{What: "watch: events lost, repeated or out of order", Unit: "events", Less: true, Targets: NoFaults, Sum: true}
}

// Faults is the sample of how many events were lost, repeated, out of order or of no write.
func (v *Verdict) Faults(plain func(error) string) figures.Sample {
	note := fmt.Sprintf("of %s", figures.Number(float64(v.Expected)))
	for _, f := range []struct {
		n    int
		what string
	}{{v.lost, "lost"}, {v.again, "repeated"}, {v.disorder, "out of order"}, {v.strange, "of no write"}} {
		if f.n > 0 {
			note += fmt.Sprintf(", %s %s", figures.Number(float64(f.n)), f.what)
		}
	}
	if v.err != nil {
		note += "; a watch ended: " + plain(v.err)
	}
	return figures.Sample{Value: float64(v.lost + v.again + v.disorder + v.strange), Note: note}
}

// Delay is the sample of the 99th percentile of delays.
func (v *Verdict) Delay() figures.Sample {
	s := figures.Sample{Samples: v.delays}
	if l := figures.LatencyOf(v.delays); l != nil {
		s.Value = l.P99
	} else {
		s.None = true
	}
	return s
}
