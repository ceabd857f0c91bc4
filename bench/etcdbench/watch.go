package etcdbench

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// writesPerSecond is the pace of changes while watches are measured.
const writesPerSecond = 100

func (r *run) measureWatch(ctx context.Context) error {
	pace := fmt.Sprintf("%d watchers, %d writes/s", r.scale.watchers, writesPerSecond)
	rounds := 0
	return r.compare(ctx, r.scale.watchRounds, false, func(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
		rounds++
		prefix := fmt.Sprintf("%swatched-%03d/", r.prefix, rounds)
		v, err := r.watchOnce(ctx, e, prefix)
		return []figures.Sample{v.Delay(), v.Faults(plain)}, err
	},
		&figures.Row{What: "watch, " + pace + ": p99 delay", Unit: "ms", Less: true, Targets: delayTargets},
		&figures.Row{What: "watch: events lost, repeated or out of order", Unit: "events", Less: true, Targets: lossTargets, Sum: true})
}

func (r *run) watchOnce(ctx context.Context, e *endpoint, prefix string) (v measure.Verdict, err error) {
	a, err := e.seat(ctx, r.scale.watchers, 1, func(uint8) string { return prefix })
	if err != nil {
		return v, err
	}
	defer a.End()
	err = a.WriteAtPace(ctx, int(r.scale.watch.Seconds()*writesPerSecond), writesPerSecond, func(ctx context.Context, n int) error {
		_, err := e.create(ctx, n, fmt.Sprintf("%s%06d", prefix, n), valueOf(n))
		return err
	})
	if err != nil {
		return v, err
	}
	a.Settle(ctx)
	a.End()
	return a.Judge(), ctx.Err()
}
