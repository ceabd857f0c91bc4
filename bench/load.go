package bench

import (
	"context"
	"sync"
	"time"
)

// load is the result of a closed loop of workers.
type load struct {
	ops     int
	took    time.Duration
	samples []time.Duration // of each operation
}

func (l *load) rate() float64 { return float64(l.ops) / l.took.Seconds() }

// closedLoop has each worker do one operation after the other for the time d, at least one. The
// first error ends the loop.
func closedLoop(ctx context.Context, workers int, d time.Duration, op func(ctx context.Context, worker int) error) (load, error) {
	return runWorkers(ctx, workers, func(ctx context.Context, worker int, begun time.Time, l *load) error {
		for {
			if err := l.time(ctx, worker, op); err != nil || time.Since(begun) >= d {
				return err
			}
		}
	})
}

// each does the operation once for every number below n, with that many workers at a time.
func each(ctx context.Context, workers, n int, op func(ctx context.Context, i int) error) (load, error) {
	return runWorkers(ctx, workers, func(ctx context.Context, worker int, _ time.Time, l *load) error {
		for i := worker; i < n; i += workers {
			if err := l.time(ctx, i, op); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *load) time(ctx context.Context, i int, op func(context.Context, int) error) error {
	begun := time.Now()
	if err := op(ctx, i); err != nil {
		return err
	}
	l.samples = append(l.samples, time.Since(begun))
	return nil
}

func runWorkers(ctx context.Context, workers int, work func(context.Context, int, time.Time, *load) error) (load, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	loads := make([]load, workers)
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range loads {
		wg.Go(func() {
			if err := work(ctx, i, begun, &loads[i]); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	sum := load{took: time.Since(begun)}
	for i := range loads {
		sum.samples = append(sum.samples, loads[i].samples...)
	}
	sum.ops = len(sum.samples)
	return sum, context.Cause(ctx)
}
