package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// What a caller has made wrong may fail for ever: that is one record until it has worked.
func TestWorkTellsOnce(t *testing.T) {
	var out strings.Builder
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Microsecond, time.Microsecond))
	queue.Add("bad")
	times := 0
	Work(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), "Thing", queue, func(context.Context, string) error {
		times++
		switch times {
		case 10: // has worked once
			queue.Add("bad")
			return nil
		case 20:
			queue.ShutDown()
		}
		return errors.New("wrong")
	})
	if n := strings.Count(out.String(), `kind=Thing name=bad err=wrong`); n != 2 || times < 20 {
		t.Errorf("%d tries, logged\n%s", times, out.String())
	}
}

// A failure whose message changes with each of its tries, ten a second, is written at most once a
// second, ever more rarely, and yet again and again.
func TestMessageDue(t *testing.T) {
	const maxMessagePause = 10 * time.Minute
	since := time.Unix(1e9, 0)
	written, last := since, time.Duration(0)
	writes := 0
	for now := since; now.Before(since.Add(24 * time.Hour)); now = now.Add(100 * time.Millisecond) {
		if !MessageDue(since, written, now, maxMessagePause) {
			continue
		}
		pause := now.Sub(written)
		if pause < time.Second || pause < last || pause > maxMessagePause {
			t.Fatalf("write %d after %v, the one before after %v", writes, pause, last)
		}
		written, last = now, pause
		writes++
	}
	if most := 10 + int(24*time.Hour/maxMessagePause); writes < 24*6 || writes > most {
		t.Errorf("%d writes in a day", writes)
	}
}
