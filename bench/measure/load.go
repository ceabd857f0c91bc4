package measure

import (
	"context"
	"sync"
	"time"
)

// Load is the result of a closed loop of workers.
type Load struct {
	Ops     int
	Took    time.Duration
	Samples []time.Duration // of each operation
}

// Rate returns operations a second.
func (l *Load) Rate() float64 { return float64(l.Ops) / l.Took.Seconds() }

// ClosedLoop has each worker do one operation after the other for the time d, at least one. The
// first error ends the loop.
func ClosedLoop(ctx context.Context, workers int, d time.Duration, op func(ctx context.Context, worker int) error) (Load, error) {
	return runWorkers(ctx, workers, func(ctx context.Context, worker int, begun time.Time, l *Load) error {
		for {
			if err := l.Time(ctx, worker, op); err != nil || time.Since(begun) >= d {
				return err
			}
		}
	})
}

// Each does the operation once for every number below n, with that many workers at a time.
func Each(ctx context.Context, workers, n int, op func(ctx context.Context, i int) error) (Load, error) {
	return runWorkers(ctx, workers, func(ctx context.Context, worker int, _ time.Time, l *Load) error {
		for i := worker; i < n; i += workers {
			if err := l.Time(ctx, i, op); err != nil {
				return err
			}
		}
		return nil
	})
}

// Time does one operation, the i-th, and adds how long it took if there was no error.
func (l *Load) Time(ctx context.Context, i int, op func(context.Context, int) error) error {
	begun := time.Now()
	if err := op(ctx, i); err != nil {
		return err
	}
	l.Samples = append(l.Samples, time.Since(begun))
	return nil
}

func runWorkers(ctx context.Context, workers int, work func(context.Context, int, time.Time, *Load) error) (Load, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	loads := make([]Load, workers)
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
	sum := Load{Took: time.Since(begun)}
	for i := range loads {
		sum.Samples = append(sum.Samples, loads[i].Samples...)
	}
	sum.Ops = len(sum.Samples)
	return sum, context.Cause(ctx)
}
