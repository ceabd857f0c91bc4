package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// shared is what all parts of a Store use. It stays as it is from Open on, but for the counters.
type shared struct {
	log changelog.Log
	o   Options
	ids
	limits
	stats counters

	ctx    context.Context // ends when Close gives up on the database
	cancel context.CancelFunc
	stop   chan struct{} // closed by Close when all commits are applied
}

// within runs a query that may take no longer than d. A database that accepts
// connections and never answers gives no error of its own: without a bound the query's
// callers would wait for ever, and the Store would not know that the database is away.
func (s *shared) within(d time.Duration, query func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	err := query(ctx)
	switch {
	case err == nil || s.ctx.Err() != nil || ctx.Err() == nil || errors.Is(err, changelog.ErrUnknown):
		return err
	case errors.Is(err, changelog.ErrUnavailable):
		return fmt.Errorf("no answer within %v: %w", d, err)
	default:
		return fmt.Errorf("no answer within %v: %w: %w", d, changelog.ErrUnavailable, err)
	}
}

// deadlineError returns why ctx ended. The error wraps kind if ctx ran out of time.
func deadlineError(ctx context.Context, kind error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", kind, ctx.Err())
	}
	return ctx.Err()
}

func (s *shared) boundedHead() (head changelog.Head, err error) {
	err = s.within(s.o.QueryTimeout, func(ctx context.Context) (err error) {
		head, err = s.log.Head(ctx)
		return err
	})
	return head, err
}

func (s *shared) boundedRows(after int64, limit int) (rows []changelog.Row, err error) {
	err = s.within(s.o.QueryTimeout, func(ctx context.Context) (err error) {
		rows, err = s.log.Rows(ctx, after, limit)
		return err
	})
	return rows, err
}

// AppendBounds are durations of transactions in seconds.
var AppendBounds = [...]float64{.001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1.024, 2.048, 4.096, 8.192}

// counters are what parts of a Store count for Stats.
type counters struct {
	watchers, batches, changes, conflicts   atomic.Int64
	appendNanos                             atomic.Int64
	appends                                 [len(AppendBounds) + 1]atomic.Int64
	headReads, watchReads, compactedDeleted atomic.Int64
	headNanos, outages                      atomic.Int64
	kept, trimmed, valueReads               atomic.Int64
	keptBound                               atomic.Int64
	setBacks, lostWrites                    atomic.Int64
}

func (c *counters) appended(changes int, took time.Duration) {
	c.batches.Add(1)
	c.changes.Add(int64(changes))
	c.appendNanos.Add(int64(took))
	i, _ := slices.BinarySearch(AppendBounds[:], took.Seconds())
	c.appends[i].Add(1)
}
