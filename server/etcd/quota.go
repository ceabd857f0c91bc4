package etcd

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	alarmTimeout = 5 * time.Second // the longest time that a request spends on quota and alarms

	measureEvery = 10 * time.Second      // interval of measurements during writes, because other members write, too
	measureAfter = 50 * time.Millisecond // the shortest pause after a measurement
	measureShare = 20                    // measurements take at most 1/20 of the time
)

// quota estimates the size of the database without a query for each write: the last measured size plus what
// was written here since. It measures again when the estimate reaches the limit, and at intervals.
type quota struct {
	limit int64 // negative: none
	size  func(context.Context) (changelog.Size, error)

	estimate atomic.Int64
	due      atomic.Int64 // Unix nanoseconds of the next measurement at the latest

	mu       sync.Mutex // held during a measurement
	earliest time.Time  // the earliest time of the next measurement
}

func (q *quota) init(limit int64, size func(context.Context) (changelog.Size, error)) {
	q.limit, q.size = limit, size
}

// exceeded adds cost to the estimate, and reports whether the limit is reached.
func (q *quota) exceeded(ctx context.Context, cost int64) bool {
	if q.limit < 0 {
		return false
	}
	if q.estimate.Add(cost) < q.limit && time.Now().UnixNano() < q.due.Load() {
		return false
	}
	return q.measure(ctx, cost) >= q.limit
}

// measure queries the database, unless it did so a moment ago, and returns the estimate.
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
