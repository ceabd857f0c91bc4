package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore"
)

// errNothingToMove is of a log without rows: Append reads the mark with the newest one, which saves
// a statement in each commit.
var errNothingToMove = errors.New("the log has no rows")

// Move stops the log. Whoever waits for the write lock reads the mark in a statement that begins
// when he has the lock.
func (l *Log) Move(ctx context.Context, to string) (head int64, err error) {
	err = l.again(ctx, func() error {
		return l.transact(ctx, func(tx *sql.Tx) (err error) {
			head, err = noteMoved(ctx, tx, to)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("move: %w", l.classify(err))
	}
	return head, nil
}

func noteMoved(ctx context.Context, tx *sql.Tx, to string) (head int64, err error) {
	var floor, newest int64
	err = tx.QueryRowContext(ctx, `SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor' FOR UPDATE`).Scan(&floor)
	if err != nil {
		return 0, err
	}
	var noted string
	err = tx.QueryRowContext(ctx, `SELECT COALESCE((SELECT value FROM meta WHERE name = 'mark/moved'), '')`).Scan(&noted)
	if err == nil {
		err = sqlstore.CheckMove(noted, to)
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
