package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// within runs a query that may take no longer than d. A database that accepts
// connections and never answers gives no error of its own: without a bound the query's
// callers would wait for ever, and the Store would not know that the database is away.
func (s *Store) within(d time.Duration, query func(context.Context) error) error {
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

func (s *Store) boundedHead() (head changelog.Head, err error) {
	err = s.within(s.o.QueryTimeout, func(ctx context.Context) (err error) {
		head, err = s.log.Head(ctx)
		return err
	})
	return head, err
}

func (s *Store) boundedRows(after int64, limit int) (rows []changelog.Row, err error) {
	err = s.within(s.o.QueryTimeout, func(ctx context.Context) (err error) {
		rows, err = s.log.Rows(ctx, after, limit)
		return err
	})
	return rows, err
}

func (s *Store) boundedAppend(d time.Duration, b *batch) (a changelog.Appended, err error) {
	err = s.within(d, func(ctx context.Context) (err error) {
		if err := s.identify(ctx, b); err != nil {
			return err
		}
		a, err = s.log.Append(ctx, b.changes)
		return err
	})
	return a, err
}
