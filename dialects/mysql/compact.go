package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Compact sweeps the next rows and moves the floor over them. The row of meta that says
// how far the sweep came is the compactors' lock. The write lock is taken last, for
// moving the floor, so writers go on while rows are deleted.
func (l compaction) Compact(ctx context.Context, through int64, limit int, retention *changelog.Retention) (changelog.Compacted, error) {
	return l.inStep(ctx, func(tx *txn) (changelog.Compacted, error) { return compact(ctx, tx, through, limit, retention) })
}

// Supersede deletes the next predecessors. The compactors' lock is that of Compact.
func (l compaction) Supersede(ctx context.Context, after, through int64, limit int) (changelog.Compacted, error) {
	return l.inStep(ctx, func(tx *txn) (changelog.Compacted, error) { return supersedeStep(ctx, tx, after, through, limit) })
}

// inStep runs a step of compaction in a transaction, anew after a deadlock.
func (l *database) inStep(ctx context.Context, step func(*txn) (changelog.Compacted, error)) (changelog.Compacted, error) {
	var c changelog.Compacted
	err := l.again(ctx, func() error {
		return l.transact(ctx, func(tx *txn) (err error) {
			c, err = step(tx)
			return err
		})
	})
	if err != nil {
		return changelog.Compacted{}, fmt.Errorf("compact: %w", l.classify(err))
	}
	return c, nil
}

func supersedeStep(ctx context.Context, tx *txn, after, through int64, limit int) (c changelog.Compacted, err error) {
	c.Swept = after
	if _, c.Busy, err = tx.lockSweep(ctx); err != nil || c.Busy {
		return c, err
	}
	err = tx.QueryRowContext(ctx, `SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor'`).Scan(&c.Floor)
	through = min(through, c.Floor)
	if err != nil || through <= after {
		return c, err
	}
	if c.Swept, err = stepEnd(ctx, tx, after, through, limit); err != nil {
		return c, err
	}
	c.Deleted, err = supersede(ctx, tx, after, c.Swept)
	return c, err
}

// transact runs f in a transaction. If a cluster rolls that back when it is committed, it can be run anew:
// should it be there all the same (resolve), doing it twice does no harm.
func (l *database) transact(ctx context.Context, f func(*txn) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(&txn{tx, l.galera.Load()}); err != nil {
		_ = tx.Rollback()
		return err
	}
	if err = tx.Commit(); err == nil || l.conflict(err) {
		return err
	}
	return unknown(err)
}

func compact(ctx context.Context, tx *txn, through int64, limit int, retention *changelog.Retention) (c changelog.Compacted, err error) {
	if c.Swept, c.Busy, err = tx.lockSweep(ctx); err != nil {
		return c, err
	}
	var newest, since int64
	err = tx.QueryRowContext(ctx, `
		SELECT (SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor'),
		       COALESCE((SELECT MAX(id) FROM log), 0),
		       COALESCE((SELECT lost FROM kept WHERE prefix = ''), -1)`).Scan(&c.Floor, &newest, &since)
	through = min(through, newest-1)
	if err != nil || c.Busy || through <= c.Swept {
		return c, err
	}
	upto, err := stepEnd(ctx, tx, c.Swept, through, limit)
	if err != nil {
		return c, err
	}
	if err := useRetention(ctx, tx, retention, since, c.Floor); err != nil {
		return c, err
	}
	if retention != nil {
		if c.Kept, err = move(ctx, tx, c.Swept, upto, retention); err != nil {
			return c, err
		}
	}
	if c.Deleted, err = sweep(ctx, tx, c.Swept, upto); err != nil {
		return c, err
	}
	if err := noteSwept(ctx, tx, c.Swept, upto, retention); err != nil {
		return c, err
	}
	c.Swept = upto
	// Another replica may have raised the floor since it was read.
	if c.Floor, err = tx.lock(ctx); err != nil {
		return c, err
	}
	c.Floor = max(c.Floor, upto)
	_, err = tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = 'floor'`, c.Floor)
	return c, err
}

// noteSwept notes how far the sweep came. If the bytes of past were known before, they still are, unless
// nothing moves there any more.
func noteSwept(ctx context.Context, tx *txn, before, now int64, retention *changelog.Retention) error {
	_, err := tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = 'swept'`, now)
	if err == nil && retention != nil {
		_, err = tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = 'past_swept' AND CAST(value AS SIGNED) = ?`, now, before)
	}
	return err
}

// sweep deletes what the rows in (swept, upto] superseded, then tombstones among them.
// Each row takes its predecessor with it: older ones went when the predecessor was swept,
// so the cost does not depend on how long a key's history is.
func sweep(ctx context.Context, tx *txn, swept, upto int64) (int64, error) {
	superseded, err := supersede(ctx, tx, swept, upto)
	if err != nil {
		return 0, err
	}
	r, err := tx.ExecContext(ctx, `DELETE FROM log WHERE id > ? AND id <= ? AND deleted = 1`, swept, upto)
	if err != nil {
		return 0, err
	}
	tombstones, err := r.RowsAffected()
	return superseded + tombstones, err
}

// stepEnd returns where a step ends that looks at limit rows after an id, but for those above through.
func stepEnd(ctx context.Context, tx *txn, after, through int64, limit int) (upto int64, err error) {
	err = tx.QueryRowContext(ctx, `
		SELECT CASE WHEN COUNT(*) = ? THEN MAX(id) ELSE ? END
		FROM (SELECT id FROM log WHERE id > ? AND id <= ? ORDER BY id LIMIT ?) AS next`,
		limit, through, after, through, limit).Scan(&upto)
	return upto, err
}

// supersede deletes the predecessors of the rows in (after, upto]. Ids are fetched first, because
// MySQL does not let a DELETE ask its own table.
func supersede(ctx context.Context, tx *txn, after, upto int64) (int64, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT (SELECT o.id FROM log AS o
		        WHERE o.`+"`key` = l.`key`"+` AND o.id < l.id
		        ORDER BY o.id DESC LIMIT 1)
		FROM log AS l
		WHERE l.id > ? AND l.id <= ?`, after, upto)
	if err != nil {
		return 0, err
	}
	ids, err := scanIDs(rows)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	r, err := tx.ExecContext(ctx, `DELETE FROM log WHERE id IN (?`+strings.Repeat(`, ?`, len(ids)-1)+`)`, ids...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// scanIDs returns the ids that are not null.
func scanIDs(rows *sql.Rows) ([]any, error) {
	defer rows.Close()
	var ids []any
	for rows.Next() {
		var id sql.NullInt64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		if id.Valid {
			ids = append(ids, id.Int64)
		}
	}
	return ids, rows.Err()
}

// Defragment makes the table anew, and its statistics, which Size tells. Writers go on meanwhile, but
// for a moment at the beginning and the end.
func (l compaction) Defragment(ctx context.Context) error {
	rows, err := l.db.QueryContext(ctx, `OPTIMIZE TABLE log`)
	if err != nil {
		return fmt.Errorf("defragment: %w", l.classify(err))
	}
	defer rows.Close()
	for rows.Next() {
		var table, op, kind, text string
		if err := rows.Scan(&table, &op, &kind, &text); err != nil {
			return fmt.Errorf("defragment: %w", l.classify(err))
		}
		if strings.EqualFold(kind, "error") {
			return fmt.Errorf("defragment: %s", text)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("defragment: %w", l.classify(err))
	}
	return nil
}

// Raise lifts the floor above everything the log has. The write lock comes first, so
// that the highest id is final.
func (l appender) Raise(ctx context.Context, revision int64) error {
	err := l.again(ctx, func() error {
		return l.transact(ctx, func(tx *txn) error { return raise(ctx, tx, revision) })
	})
	if err != nil {
		return fmt.Errorf("raise floor: %w", l.classify(err))
	}
	return nil
}

func raise(ctx context.Context, tx *txn, revision int64) error {
	floor, err := tx.lock(ctx)
	if err != nil {
		return err
	}
	var newest int64
	err = tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(id), 0) FROM log`).Scan(&newest)
	if err != nil || revision <= max(floor, newest) {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = 'floor'`, revision)
	return err
}
