package mysql

import (
	"context"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// errNothingToMove is of a log without rows: Append reads the mark with the newest one, which saves
// a statement in each commit.
var errNothingToMove = errors.New("the log has no rows")

// Move stops the log. Whoever waits for the write lock reads the mark in a statement that begins
// when he has the lock.
func (l filling) Move(ctx context.Context, to string) (head int64, err error) {
	err = l.again(ctx, func() error {
		return l.transact(ctx, func(tx *txn) (err error) {
			head, err = noteMoved(ctx, tx, to)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("move: %w", l.classify(err))
	}
	return head, nil
}

func noteMoved(ctx context.Context, tx *txn, to string) (head int64, err error) {
	floor, err := tx.lock(ctx)
	if err != nil {
		return 0, err
	}
	var noted string
	var newest int64
	err = tx.QueryRowContext(ctx, `SELECT COALESCE((SELECT value FROM meta WHERE name = 'mark/moved'), '')`).Scan(&noted)
	if err == nil {
		err = changelog.CheckMove(noted, to)
	}
	if err != nil {
		return 0, err
	}
	if to == "" {
		_, err = tx.ExecContext(ctx, `DELETE FROM meta WHERE name = 'mark/moved'`)
	} else {
		_, err = tx.ExecContext(ctx, `REPLACE INTO meta (name, value) VALUES ('mark/moved', ?)`, to)
	}
	if err == nil {
		err = tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(id), 0) FROM log`).Scan(&newest)
	}
	if err == nil && newest == 0 && to != "" {
		err = errNothingToMove
	}
	return max(floor, newest), err
}
