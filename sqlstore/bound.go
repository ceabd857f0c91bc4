package sqlstore

import (
	"context"
	"errors"
	"fmt"
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

func (au *authors) boundedAppend(d time.Duration, b *batch) (a changelog.Appended, err error) {
	err = au.within(d, func(ctx context.Context) (err error) {
		if err := au.identify(ctx, b); err != nil {
			return err
		}
		a, err = au.log.Append(ctx, b.changes)
		return err
	})
	return a, err
}
