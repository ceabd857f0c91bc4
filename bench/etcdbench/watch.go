package etcdbench

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// writesPerSecond is the pace of changes while watches are measured.
const writesPerSecond = 100

func (r *run) measureWatch(ctx context.Context) error {
	pace := fmt.Sprintf("%d watchers, %d writes/s", r.scale.watchers, writesPerSecond)
	rounds := 0
	return r.compare(ctx, r.scale.watchRounds, false, func(ctx context.Context, e *endpoint) ([]sample, error) {
		rounds++
		prefix := fmt.Sprintf("%swatched-%03d/", r.prefix, rounds)
		v, err := r.watchOnce(ctx, e, prefix)
		return []sample{v.delay(), v.faults()}, err
	},
		&Row{What: "watch, " + pace + ": p99 delay", Unit: "ms", Less: true, targets: delayTargets},
		&Row{What: "watch: events lost, repeated or out of order", Unit: "events", Less: true, targets: lossTargets, sum: true})
}

func (r *run) watchOnce(ctx context.Context, e *endpoint, prefix string) (v verdict, err error) {
	a, err := e.seat(ctx, r.scale.watchers, 1, func(uint8) string { return prefix })
	if err != nil {
		return v, err
	}
	defer a.end()
	if err := r.writeAtPace(ctx, e, &a.ledger, prefix); err != nil {
		return v, err
	}
	a.settle(ctx)
	a.end()
	return a.judge(), ctx.Err()
}

// writeAtPace starts each write at its time, even if earlier ones have not ended.
func (r *run) writeAtPace(ctx context.Context, e *endpoint, l *ledger, prefix string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range int(r.scale.watch.Seconds() * writesPerSecond) {
		sleep(ctx, time.Until(begun.Add(time.Duration(i)*time.Second/writesPerSecond)))
		if ctx.Err() != nil {
			break
		}
		n := l.begin(0)
		wg.Go(func() {
			if _, err := e.create(ctx, n, fmt.Sprintf("%s%06d", prefix, n), valueOf(n)); err != nil {
				l.put(n, unknown)
				cancel(err)
				return
			}
			l.put(n, done)
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
