// Package reconcile brings objects in line with what is wanted, one name after the other: a
// queue of names, and the loop that works it off. It knows no kind and no store; what is to
// be done for a name is the caller's.
package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
)

// First and Most are the pauses before a name that failed is tried again: the first is
// First, and each is twice as long as the one before, up to Most.
const (
	First = 50 * time.Millisecond
	Most  = 5 * time.Second
)

// ErrReported is wrapped by errors that need no log record, because a condition of the object reports them.
var ErrReported = errors.New("told in the object's status")

// Queue holds names, each of them once.
type Queue = workqueue.TypedRateLimitingInterface[string]

// NewQueue returns an empty Queue whose pauses grow from first to most.
func NewQueue(first, most time.Duration) Queue { return NewNamedQueue("", first, most) }

// NewNamedQueue returns a Queue that upstream's metrics of queues (workqueue_*) have under that
// name. It has a goroutine until it is shut down.
func NewNamedQueue(name string, first, most time.Duration) Queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](first, most),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name})
}

// Work calls do with the names in queue until the queue is shut down. A name that fails is
// tried again; of its failures in a row the first is logged. kind is what the names are of.
func Work(ctx context.Context, logger *slog.Logger, kind string, queue Queue, do func(context.Context, string) error) {
	for {
		name, quit := queue.Get()
		if quit {
			return
		}
		first := queue.NumRequeues(name) == 0
		err := do(ctx, name)
		if err == nil || ctx.Err() != nil {
			queue.Forget(name)
		} else {
			if first && !errors.Is(err, ErrReported) { // what a caller has made may fail for ever
				logger.Warn("object could not be reconciled; it is tried again", "kind", kind, "name", name, "err", err)
			}
			queue.AddRateLimited(name)
		}
		queue.Done(name)
	}
}

// Overtaken tells whether a write failed because its object has been deleted or changed
// meanwhile. A reconciler passes over it: the other change comes by as well.
func Overtaken(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// minMessagePause is the shortest pause between two writes that differ only in the message of a failure.
const minMessagePause = time.Second

// MessageDue reports whether a failure is worth another write because its message has changed. The message of
// some failures changes with every try, for example if it names the port of a connection, and each write
// costs a row, and an event for every watch. The pause between two writes is as long as the failure had
// lasted at the first of them, but at most most, so that it doubles each time. It is computed from what is
// stored, so that it holds for all servers of a database together, and across restarts.
func MessageDue(since, written, now time.Time, most time.Duration) bool {
	return now.Sub(written) >= min(max(written.Sub(since), minMessagePause), most)
}
