package mysql

import (
	"context"
	"database/sql"
	"errors"
)

// The row of meta that has the floor is the write lock, and the one that says how far was swept is the
// compactors' lock. Whoever takes one at a Galera cluster also changes a row that is the lock's own
// (galera.go).

// takeTurn changes the write lock's own row.
const takeTurn = `
		INSERT INTO meta (name, value) VALUES ('turn', '1')
		ON DUPLICATE KEY UPDATE value = CAST(value AS SIGNED) + 1`

// txn is a transaction.
type txn struct {
	*sql.Tx
	galera bool
}

// lock takes the write lock and returns the floor.
func (tx *txn) lock(ctx context.Context) (floor int64, err error) {
	if tx.galera {
		if _, err := tx.ExecContext(ctx, takeTurn); err != nil {
			return 0, err
		}
	}
	err = tx.QueryRowContext(ctx, `SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor' FOR UPDATE`).Scan(&floor)
	return floor, err
}

// lockSweep takes the compactors' lock if it is free, and returns how far was swept.
func (tx *txn) lockSweep(ctx context.Context) (swept int64, busy bool, err error) {
	err = tx.QueryRowContext(ctx, `
		SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'swept' FOR UPDATE SKIP LOCKED`).Scan(&swept)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, true, nil
	}
	if err == nil {
		err = tx.takeSweepTurn(ctx)
	}
	return swept, false, err
}

// waitForSweep takes the compactors' lock.
func (tx *txn) waitForSweep(ctx context.Context) (swept int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'swept' FOR UPDATE`).Scan(&swept)
	if err == nil {
		err = tx.takeSweepTurn(ctx)
	}
	return swept, err
}

// takeSweepTurn changes the compactors' lock's own row.
func (tx *txn) takeSweepTurn(ctx context.Context) (err error) {
	if tx.galera {
		_, err = tx.ExecContext(ctx, `
			INSERT INTO meta (name, value) VALUES ('sweep turn', '1')
			ON DUPLICATE KEY UPDATE value = CAST(value AS SIGNED) + 1`)
	}
	return err
}
