package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Move stops the log. Whoever waits for the write lock reads the mark in a statement that begins
// when he has the lock.
func (l filling) Move(ctx context.Context, to string) (head int64, err error) {
	err = l.again(ctx, func() error {
		return pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			head, err = noteMoved(ctx, tx, to)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("move: %w", l.classify(err))
	}
	return head, nil
}

func noteMoved(ctx context.Context, tx pgx.Tx, to string) (head int64, err error) {
	if _, err := tx.Exec(ctx, `SELECT FROM meta WHERE name = 'floor' FOR UPDATE`); err != nil {
		return 0, err
	}
	var noted string
	err = tx.QueryRow(ctx, `SELECT coalesce((SELECT value FROM meta WHERE name = 'mark/moved'), '')`).Scan(&noted)
	if err == nil {
		err = changelog.CheckMove(noted, to)
	}
	if err != nil {
		return 0, err
	}
	if to == "" {
		_, err = tx.Exec(ctx, `DELETE FROM meta WHERE name = 'mark/moved'`)
	} else {
		_, err = tx.Exec(ctx, `
			INSERT INTO meta (name, value) VALUES ('mark/moved', $1)
			ON CONFLICT (name) DO UPDATE SET value = $1`, to)
	}
	if err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `
		SELECT greatest((SELECT value::bigint FROM meta WHERE name = 'floor'), (SELECT max(id) FROM log))`).Scan(&head)
	return head, err
}
