// Package sleep waits for time to pass, or for a context to end. It owns nothing, and knows of no other package.
package sleep

import (
	"context"
	"time"
)

// For waits for d and returns nil. If ctx ends before, or has ended, it returns the error of ctx.
func For(ctx context.Context, d time.Duration) error { return Unless(ctx, d, nil) }

// Until is For with the time at which the wait is over.
func Until(ctx context.Context, t time.Time) error { return For(ctx, time.Until(t)) }

// Unless is For, but it also returns, without an error, when wake is closed or sends something. A nil channel
// never does.
func Unless(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err()
}
