package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Trim deletes rows of past that have expired. It looks whether there are any before it takes the
// compactors' lock.
func (l compaction) Trim(ctx context.Context, retention *changelog.Retention, now int64, limit int) (c changelog.Compacted, err error) {
	var due bool
	if retention == nil {
		err = l.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM past) OR EXISTS (SELECT FROM kept)`).Scan(&due)
	} else {
		err = l.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM past WHERE expires <= $1)`, now).Scan(&due)
	}
	if err == nil && due {
		err = l.inStep(ctx, &c, func(tx pgx.Tx) (err error) {
			c.Deleted, err = trim(ctx, tx, retention, now, limit)
			return err
		})
	}
	if err != nil {
		return changelog.Compacted{}, fmt.Errorf("trim the past: %w", l.classify(err))
	}
	return c, nil
}

// inStep runs a step in a transaction that has the compactors' lock, unless another has it.
func (l *database) inStep(ctx context.Context, c *changelog.Compacted, step func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		if _, c.Busy, err = lockSweep(ctx, tx); err != nil || c.Busy {
			return err
		}
		return step(tx)
	})
}

func trim(ctx context.Context, tx pgx.Tx, retention *changelog.Retention, now int64, limit int) (int64, error) {
	if retention == nil {
		if _, err := tx.Exec(ctx, `DELETE FROM kept`); err != nil {
			return 0, err
		}
		if err := forgetPastData(ctx, tx); err != nil {
			return 0, err
		}
		done, err := tx.Exec(ctx, `DELETE FROM past WHERE id = ANY (ARRAY(SELECT id FROM past ORDER BY id LIMIT $1::bigint))`, limit)
		return done.RowsAffected(), err
	}
	rows, err := tx.Query(ctx, `SELECT id, key, until_id FROM past WHERE expires <= $1 ORDER BY expires, id LIMIT $2::bigint`, now, limit)
	if err != nil {
		return 0, err
	}
	lost, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o changelog.Old, err error) {
		return o, row.Scan(&o.ID, &o.Key, &o.UntilID)
	})
	if err != nil {
		return 0, err
	}
	return lose(ctx, tx, changelog.Cuts(lost))
}

// Refit gives rows of past another expiry.
func (l compaction) Refit(ctx context.Context, retention *changelog.Retention, after int64, limit int) (changelog.Compacted, error) {
	c := changelog.Compacted{Swept: after}
	err := l.inStep(ctx, &c, func(tx pgx.Tx) error { return refit(ctx, tx, &c, retention, limit) })
	if err != nil {
		return changelog.Compacted{}, fmt.Errorf("fit the past to other rules: %w", l.classify(err))
	}
	return c, nil
}

func refit(ctx context.Context, tx pgx.Tx, c *changelog.Compacted, retention *changelog.Retention, limit int) error {
	found, err := tx.Query(ctx, `SELECT id, key, until_id, until_at, expires FROM past WHERE id > $1 ORDER BY id LIMIT $2::bigint`, c.Swept, limit)
	if err != nil {
		return err
	}
	rows, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (o changelog.Old, err error) {
		return o, row.Scan(&o.ID, &o.Key, &o.UntilID, &o.UntilAt, &o.Expires)
	})
	if err != nil || len(rows) == 0 {
		return err
	}
	c.Swept = rows[len(rows)-1].ID
	changed, counts := retention.Refit(rows)
	if err := setExpiry(ctx, tx, changed); err != nil {
		return err
	}
	var lost []changelog.Cut
	for n, keys := range counts {
		if lost, err = beyond(ctx, tx, lost, n, keys); err != nil {
			return err
		}
	}
	c.Deleted, err = lose(ctx, tx, lost)
	return err
}

func setExpiry(ctx context.Context, tx pgx.Tx, rows []changelog.Old) error {
	if len(rows) == 0 {
		return nil
	}
	var ids, expires []int64
	for _, o := range rows {
		ids, expires = append(ids, o.ID), append(expires, o.Expires)
	}
	_, err := tx.Exec(ctx, `
		UPDATE past SET expires = r.expires
		FROM unnest($1::bigint[], $2::bigint[]) AS r (id, expires)
		WHERE past.id = r.id AND past.id = ANY ($1::bigint[])`, ids, expires)
	return err
}
