package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Two rows of meta have the bytes of keys and values in past, and how far compaction had looked then: if that is
// not how far it has looked now, the number is not known. Each is found by its name alone: a scan of meta would wait
// for the write lock.

// Bound deletes rows of past that are too many. It looks whether there are any before it takes the compactors'
// lock.
func (l compaction) Bound(ctx context.Context, bytes int64, limit int) (c changelog.Compacted, err error) {
	if c.Past, err = l.pastData(ctx); err != nil {
		return changelog.Compacted{}, fmt.Errorf("bound the past: %w", l.classify(err))
	}
	if c.Past >= 0 && c.Past <= bytes {
		return c, nil
	}
	past := c.Past
	return l.inStep(ctx, func(tx *txn) (c changelog.Compacted, err error) {
		c.Past = past
		if _, c.Busy, err = tx.lockSweep(ctx); err != nil || c.Busy {
			return c, err
		}
		err = bound(ctx, tx, &c, bytes, limit)
		return c, err
	})
}

const pastDataSQL = `
	SELECT COALESCE((
		SELECT CAST(b.value AS SIGNED)
		FROM meta AS b, meta AS stamp, meta AS swept
		WHERE b.name = 'past_bytes' AND stamp.name = 'past_swept' AND swept.name = 'swept' AND stamp.value = swept.value), -1)`

// pastData reads the bytes of past; -1 if they are not known.
func (l *database) pastData(ctx context.Context) (bytes int64, err error) {
	err = l.db.QueryRowContext(ctx, pastDataSQL).Scan(&bytes)
	return bytes, err
}

// countStep is how many rows of past are added up by one statement.
const countStep = 10_000

// countPast adds past up, and notes the sum.
func countPast(ctx context.Context, tx *txn) (bytes int64, err error) {
	for last, n := int64(0), int64(countStep); n == countStep; {
		var some int64
		err := tx.QueryRowContext(ctx, `
			SELECT COUNT(*), COALESCE(MAX(id), ?), CAST(COALESCE(SUM(bytes), 0) AS SIGNED)
			FROM (SELECT id, LENGTH(`+"`key`"+`) + LENGTH(value) AS bytes FROM past FORCE INDEX (PRIMARY)
			      WHERE id > ? ORDER BY id LIMIT ?) AS next`, last, last, countStep).Scan(&n, &last, &some)
		if err != nil {
			return 0, err
		}
		bytes += some
	}
	if _, err := tx.ExecContext(ctx, `REPLACE INTO meta (name, value) VALUES ('past_bytes', ?)`, bytes); err != nil {
		return 0, err
	}
	var swept string
	if err := tx.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'swept'`).Scan(&swept); err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, `REPLACE INTO meta (name, value) VALUES ('past_swept', ?)`, swept)
	return bytes, err
}

// addPast changes the number of bytes, by sign times those of rows that have come to past, or will leave it.
func addPast(ctx context.Context, tx *txn, sign int, ids []any) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE meta SET value = CAST(value AS SIGNED) + ? * (
			SELECT CAST(COALESCE(SUM(LENGTH(`+"`key`"+`) + LENGTH(value)), 0) AS SIGNED)
			FROM past WHERE id IN (?`+strings.Repeat(`, ?`, len(ids)-1)+`))
		WHERE name = 'past_bytes'`, append([]any{sign}, ids...)...)
	return err
}

// forgetPastData says that the bytes of past are not known.
func forgetPastData(ctx context.Context, tx *txn) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM meta WHERE name = 'past_swept'`)
	return err
}

// bound deletes rows if those of past are too many.
func bound(ctx context.Context, tx *txn, c *changelog.Compacted, bytes int64, limit int) (err error) {
	if err = tx.QueryRowContext(ctx, pastDataSQL).Scan(&c.Past); err == nil && c.Past < 0 {
		c.Past, err = countPast(ctx, tx)
	}
	if err != nil || c.Past <= bytes {
		return err
	}
	first, err := firstToGo(ctx, tx, limit)
	if err != nil {
		return err
	}
	if len(first) == 0 { // the number is wrong
		c.Past = 0
		return forgetPastData(ctx, tx)
	}
	if c.Deleted, err = lose(ctx, tx, changelog.Cuts(changelog.Excess(first, c.Past, bytes))); err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'past_bytes'`).Scan(&c.Past)
}

// firstToGo reads the rows of past that expire first.
func firstToGo(ctx context.Context, tx *txn, limit int) (first []changelog.Old, err error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT id, `+"`key`, until_id, LENGTH(`key`)"+` + LENGTH(value)
		FROM past FORCE INDEX (past_expires)
		ORDER BY expires, id LIMIT ?`, limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var o changelog.Old
		if err := rows.Scan(&o.ID, &o.Key, &o.UntilID, &o.Bytes); err != nil {
			return nil, err
		}
		first = append(first, o)
	}
	return first, rows.Err()
}
