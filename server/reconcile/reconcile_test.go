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
