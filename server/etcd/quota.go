package etcd

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	alarmTimeout = 5 * time.Second // of what a request does for quota and alarms beside its own work

	measureEvery = 10 * time.Second      // while there are writes: other members write, too
	measureAfter = 50 * time.Millisecond // at least, after a measurement
	measureShare = 20                    // of the time is the most that measuring takes, as 1/20
)

// quota knows how large the database is without asking it at each write: what was measured plus
// what was written here since. It measures again when that reaches the limit, and now and then.
type quota struct {
	limit int64 // negative: none
	size  func(context.Context) (changelog.Size, error)

	estimate atomic.Int64
	due      atomic.Int64 // Unix nanoseconds of the next measurement, whatever the estimate is

	mu       sync.Mutex // held by the one who measures
	earliest time.Time  // for another measurement
}

func (q *quota) init(limit int64, size func(context.Context) (changelog.Size, error)) {
	q.limit, q.size = limit, size
}

// exceeded adds cost to what is written and says whether the limit is reached.
func (q *quota) exceeded(ctx context.Context, cost int64) bool {
	if q.limit < 0 {
		return false
	}
	if q.estimate.Add(cost) < q.limit && time.Now().UnixNano() < q.due.Load() {
		return false
	}
	return q.measure(ctx, cost) >= q.limit
}

// measure asks the database, unless it was asked a moment ago, and returns the estimate.
func (q *quota) measure(ctx context.Context, cost int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	begun := time.Now()
	if begun.Before(q.earliest) {
		return q.estimate.Load()
	}
	ctx, cancel := context.WithTimeout(ctx, alarmTimeout)
	defer cancel()
	if size, err := q.size(ctx); err == nil {
		q.estimate.Store(size.Bytes + cost)
	}
	took := time.Since(begun)
	q.earliest = begun.Add(max(measureAfter, measureShare*took))
	q.due.Store(begun.Add(max(measureEvery, measureShare*took)).UnixNano())
	return q.estimate.Load()
}
