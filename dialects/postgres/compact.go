package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/sqlstore"
)

// Compact sweeps the next rows and moves the floor over them. The row of meta that says
// how far the sweep came is the compactors' lock. The write lock is taken last, for
// moving the floor, so writers go on while rows are deleted.
func (l *Log) Compact(ctx context.Context, through int64, limit int) (sqlstore.Compacted, error) {
	var c sqlstore.Compacted
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		c, err = compact(ctx, tx, through, limit)
		return err
	})
	if err != nil {
		return sqlstore.Compacted{}, fmt.Errorf("compact: %w", l.classify(err))
	}
	return c, nil
}

func compact(ctx context.Context, tx pgx.Tx, through int64, limit int) (c sqlstore.Compacted, err error) {
	err = tx.QueryRow(ctx, `SELECT value::bigint FROM meta WHERE name = 'swept' FOR UPDATE SKIP LOCKED`).Scan(&c.Swept)
	if errors.Is(err, pgx.ErrNoRows) {
		c.Busy, err = true, nil
	}
	if err != nil {
		return c, err
	}
	var newest int64
	err = tx.QueryRow(ctx, `
		SELECT (SELECT value::bigint FROM meta WHERE name = 'floor'),
		       coalesce((SELECT max(id) FROM log), 0)`).Scan(&c.Floor, &newest)
	through = min(through, newest-1)
	if err != nil || c.Busy || through <= c.Swept {
		return c, err
	}
	var upto int64
	err = tx.QueryRow(ctx, `
		SELECT CASE WHEN count(*) = $3 THEN max(id) ELSE $2::bigint END
		FROM (SELECT id FROM log WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3::bigint) AS next`,
		c.Swept, through, limit).Scan(&upto)
	if err != nil {
		return c, err
	}
	if c.Deleted, err = sweep(ctx, tx, c.Swept, upto); err != nil {
		return c, err
	}
	c.Swept = upto
	if _, err := tx.Exec(ctx, `UPDATE meta SET value = $1::bigint::text WHERE name = 'swept'`, c.Swept); err != nil {
		return c, err
	}
	err = tx.QueryRow(ctx, `
		UPDATE meta SET value = greatest(value::bigint, $1::bigint)::text
		WHERE name = 'floor'
		RETURNING value::bigint`, upto).Scan(&c.Floor)
	return c, err
}

// sweep deletes what the rows in (swept, upto] superseded, then tombstones among them.
// Each row takes its predecessor with it: older ones went when the predecessor was swept,
// so the cost does not depend on how long a key's history is.
func sweep(ctx context.Context, tx pgx.Tx, swept, upto int64) (int64, error) {
	superseded, err := tx.Exec(ctx, `
		DELETE FROM log WHERE id = ANY (ARRAY(
			SELECT p.id
			FROM log AS l
			CROSS JOIN LATERAL (
				SELECT o.id FROM log AS o
				WHERE o.key = l.key AND o.id < l.id
				ORDER BY o.id DESC LIMIT 1) AS p
			WHERE l.id > $1 AND l.id <= $2))`, swept, upto)
	if err != nil {
		return 0, err
	}
	tombstones, err := tx.Exec(ctx, `DELETE FROM log WHERE id > $1 AND id <= $2 AND deleted`, swept, upto)
	return superseded.RowsAffected() + tombstones.RowsAffected(), err
}

// Raise lifts the floor above everything the log has. The write lock comes first, so
// that the highest id is final.
func (l *Log) Raise(ctx context.Context, revision int64) error {
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT FROM meta WHERE name = 'floor' FOR UPDATE`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			UPDATE meta SET value = $1::bigint::text
			WHERE name = 'floor' AND value::bigint < $1
			  AND coalesce((SELECT max(id) FROM log), 0) < $1`, revision)
		return err
	})
	if err != nil {
		return fmt.Errorf("raise floor: %w", l.classify(err))
	}
	return nil
}
