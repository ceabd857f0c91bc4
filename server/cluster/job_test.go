package cluster

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A job that fails again and again is logged once, until it has succeeded.
func TestJobTellsOnce(t *testing.T) {
	var out strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	times := 0
	j := job{every: time.Millisecond, atOnce: true, failed: "it fails", do: func(context.Context) error {
		times++
		switch times {
		case 5: // the job succeeds once
			return nil
		case 10:
			cancel()
		}
		return errors.New("wrong")
	}}
	j.run(ctx, slog.New(slog.NewTextHandler(&out, nil)))
	if n := strings.Count(out.String(), `msg="it fails" err=wrong`); n != 2 {
		t.Errorf("%d times, logged\n%s", times, out.String())
	}
}

// A job that is due runs at once and does not wait for its next turn.
func TestJobDue(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	due := make(chan struct{}, 1)
	due <- struct{}{}
	j := job{every: time.Hour, due: due, do: func(context.Context) error { cancel(); return nil }}
	j.run(ctx, slog.New(slog.DiscardHandler))
}
