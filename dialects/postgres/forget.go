package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// forgetStep is how many versions go in one transaction.
const forgetStep = 500

// Forget deletes the old versions of a key. Each transaction waits for the compactors' lock.
func (l compaction) Forget(ctx context.Context, key string) (removed int64, err error) {
	if l.kind != changelog.KindAPI {
		return 0, fmt.Errorf("forget %s: %w", key, changelog.ErrKind)
	}
	for more := true; more && err == nil; {
		var n int64
		err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			if _, err := tx.Exec(ctx, `SELECT FROM meta WHERE name = 'swept' FOR UPDATE`); err != nil {
				return err
			}
			n, err = forget(ctx, tx, key)
			return err
		})
		if more = n >= forgetStep; err == nil {
			removed += n
		}
	}
	if err != nil {
		return removed, fmt.Errorf("forget %s: %w", key, l.classify(err))
	}
	return removed, nil
}

// forget deletes the oldest of a key's versions in past, and when there are no more, those in log.
func forget(ctx context.Context, tx pgx.Tx, key string) (removed int64, err error) {
	rows, err := tx.Query(ctx, `SELECT id, key, until_id FROM past WHERE key = $1 ORDER BY id LIMIT $2::bigint`, key, forgetStep)
	if err != nil {
		return 0, err
	}
	old, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o changelog.Old, err error) {
		return o, row.Scan(&o.ID, &o.Key, &o.UntilID)
	})
	if err != nil {
		return 0, err
	}
	if removed, err = lose(ctx, tx, changelog.Cuts(old)); err != nil || len(old) == forgetStep {
		return removed, err
	}
	n, err := forgetNow(ctx, tx, key)
	return removed + n, err
}

// forgetNow deletes the versions in log but the current one. Then the floor is the head: it keeps the
// place of the newest row if that is a tombstone and goes. The write lock comes first, so that nobody
// draws a revision meanwhile.
func forgetNow(ctx context.Context, tx pgx.Tx, key string) (int64, error) {
	if _, err := tx.Exec(ctx, `SELECT FROM meta WHERE name = 'floor' FOR UPDATE`); err != nil {
		return 0, err
	}
	var head, newest, since int64
	err := tx.QueryRow(ctx, `
		SELECT last.id, own.id, coalesce((SELECT lost FROM kept WHERE prefix = ''), -1)
		FROM (SELECT max(id) AS id FROM log) AS last
		CROSS JOIN (SELECT id FROM log WHERE key = $1 ORDER BY id DESC LIMIT 1) AS own`, key).Scan(&head, &newest, &since)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	done, err := tx.Exec(ctx, `DELETE FROM log WHERE key = $1 AND (id < $2 OR deleted)`, key, newest)
	if err != nil || done.RowsAffected() == 0 {
		return 0, err
	}
	if since >= 0 {
		if _, err := lose(ctx, tx, []changelog.Cut{{Key: key, ID: newest, Until: newest}}); err != nil {
			return 0, err
		}
	}
	_, err = tx.Exec(ctx, `UPDATE meta SET value = greatest(value::bigint, $1::bigint)::text WHERE name = 'floor'`, head)
	return done.RowsAffected(), err
}
