package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Trim deletes rows of past that have expired. It looks whether there are any before it takes the
// compactors' lock.
func (l compaction) Trim(ctx context.Context, retention *changelog.Retention, now int64, limit int) (c changelog.Compacted, err error) {
	var due bool
	if retention == nil {
		err = l.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM past) OR EXISTS (SELECT 1 FROM kept)`).Scan(&due)
	} else {
		err = l.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM past WHERE expires <= ?)`, now).Scan(&due)
	}
	if err != nil {
		return c, fmt.Errorf("trim the past: %w", l.classify(err))
	}
	if !due {
		return c, nil
	}
	return l.inStep(ctx, func(tx *txn) (c changelog.Compacted, err error) {
		if _, c.Busy, err = tx.lockSweep(ctx); err != nil || c.Busy {
			return c, err
		}
		c.Deleted, err = trim(ctx, tx, retention, now, limit)
		return c, err
	})
}

func trim(ctx context.Context, tx *txn, retention *changelog.Retention, now int64, limit int) (int64, error) {
	if retention == nil {
		if _, err := tx.ExecContext(ctx, `DELETE FROM kept`); err != nil {
			return 0, err
		}
		if err := forgetPastData(ctx, tx); err != nil {
			return 0, err
		}
		r, err := tx.ExecContext(ctx, `DELETE FROM past ORDER BY id LIMIT ?`, limit)
		if err != nil {
			return 0, err
		}
		return r.RowsAffected()
	}
	lost, err := scanOld(tx.QueryContext(ctx, `
		SELECT id, `+"`key`"+`, until_id, until_at, expires FROM past
		WHERE expires <= ?
		ORDER BY expires, id LIMIT ?`, now, limit))
	if err != nil {
		return 0, err
	}
	return lose(ctx, tx, changelog.Cuts(lost))
}

// scanOld reads the answer of a query for id, key, until_id, until_at and expires.
func scanOld(rows *sql.Rows, err error) (old []changelog.Old, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o changelog.Old
		if err := rows.Scan(&o.ID, &o.Key, &o.UntilID, &o.UntilAt, &o.Expires); err != nil {
			return nil, err
		}
		old = append(old, o)
	}
	return old, rows.Err()
}

// Refit gives rows of past another expiry.
func (l compaction) Refit(ctx context.Context, retention *changelog.Retention, after int64, limit int) (changelog.Compacted, error) {
	return l.inStep(ctx, func(tx *txn) (c changelog.Compacted, err error) {
		c.Swept = after
		if _, c.Busy, err = tx.lockSweep(ctx); err != nil || c.Busy {
			return c, err
		}
		err = refit(ctx, tx, &c, retention, limit)
		return c, err
	})
}

func refit(ctx context.Context, tx *txn, c *changelog.Compacted, retention *changelog.Retention, limit int) error {
	rows, err := scanOld(tx.QueryContext(ctx, `
		SELECT id, `+"`key`"+`, until_id, until_at, expires FROM past
		WHERE id > ?
		ORDER BY id LIMIT ?`, c.Swept, limit))
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

func setExpiry(ctx context.Context, tx *txn, rows []changelog.Old) error {
	if len(rows) == 0 {
		return nil
	}
	args := make([]any, 0, 2*len(rows))
	for _, o := range rows {
		args = append(args, o.ID, o.Expires)
	}
	_, err := tx.ExecContext(ctx, `
		UPDATE (SELECT ? AS id, ? AS expires`+strings.Repeat(` UNION ALL SELECT ?, ?`, len(rows)-1)+`) AS r
		STRAIGHT_JOIN past AS p ON p.id = r.id
		SET p.expires = r.expires`, args...)
	return err
}
