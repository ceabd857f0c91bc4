package mysql

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// forgetStep is how many versions go in one transaction.
const forgetStep = 500

// Forget deletes the old versions of a key. Each transaction waits for the compactors' lock.
func (l compaction) Forget(ctx context.Context, key string) (removed int64, err error) {
	if l.kind != changelog.KindAPI {
		return 0, fmt.Errorf("forget %s: %w", key, changelog.ErrKind)
	}
	for more := true; more; {
		c, err := l.inStep(ctx, func(tx *txn) (c changelog.Compacted, err error) {
			if c.Swept, err = tx.waitForSweep(ctx); err != nil {
				return c, err
			}
			c.Deleted, err = forget(ctx, tx, []byte(key))
			return c, err
		})
		if err != nil {
			return removed, fmt.Errorf("forget %s: %w", key, err)
		}
		removed += c.Deleted
		more = c.Deleted >= forgetStep
	}
	return removed, nil
}

// forget deletes the oldest of a key's versions in past, and when there are no more, those in log.
func forget(ctx context.Context, tx *txn, key []byte) (removed int64, err error) {
	old, err := scanOld(tx.QueryContext(ctx, `
		SELECT id, `+"`key`"+`, until_id, until_at, expires FROM past
		WHERE `+"`key`"+` = ?
		ORDER BY id LIMIT ?`, key, forgetStep))
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
func forgetNow(ctx context.Context, tx *txn, key []byte) (removed int64, err error) {
	floor, err := tx.lock(ctx)
	if err != nil {
		return 0, err
	}
	var head, newest, since int64
	err = tx.QueryRowContext(ctx, `
		SELECT COALESCE((SELECT MAX(id) FROM log), 0),
		       COALESCE((SELECT id FROM log WHERE `+"`key`"+` = ? ORDER BY id DESC LIMIT 1), 0),
		       COALESCE((SELECT lost FROM kept WHERE prefix = ''), -1)`, key).Scan(&head, &newest, &since)
	if err != nil || newest == 0 {
		return 0, err
	}
	r, err := tx.ExecContext(ctx, `DELETE FROM log WHERE `+"`key`"+` = ? AND (id < ? OR deleted = 1)`, key, newest)
	if err == nil {
		removed, err = r.RowsAffected()
	}
	if err != nil || removed == 0 {
		return 0, err
	}
	if since >= 0 {
		if _, err := lose(ctx, tx, []changelog.Cut{{Key: string(key), ID: newest, Until: newest}}); err != nil {
			return 0, err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = 'floor'`, max(floor, head))
	return removed, err
}
