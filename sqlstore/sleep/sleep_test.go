package sleep

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFor(t *testing.T) {
	begun := time.Now()
	if err := For(t.Context(), 5*time.Millisecond); err != nil || time.Since(begun) < 5*time.Millisecond {
		t.Errorf("For = %v after %v, want nil after 5 ms", err, time.Since(begun))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, d := range []time.Duration{-1, 0, time.Hour} {
		if err := For(ended, d); !errors.Is(err, context.Canceled) {
			t.Errorf("For(%v) with a context that has ended = %v, want %v", d, err, context.Canceled)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := Until(ctx, time.Now().Add(time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Until = %v, want %v", err, context.DeadlineExceeded)
	}
	if err := Until(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Errorf("Until a time that is over = %v, want nil", err)
	}
}

func TestUnless(t *testing.T) {
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	if err := Unless(t.Context(), time.Hour, wake); err != nil {
		t.Errorf("Unless, woken = %v, want nil", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	close(wake)
	if err := Unless(ended, time.Hour, wake); !errors.Is(err, context.Canceled) {
		t.Errorf("Unless, woken after ctx has ended = %v, want %v", err, context.Canceled)
	}
}
