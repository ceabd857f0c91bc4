package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Two rows of meta have the bytes of keys and values in past, and how far compaction had looked then: if that is
// not how far it has looked now, the number is not known. Statements that change past change the number, too.

// Bound deletes rows of past that are too many. It looks whether there are any before it takes the compactors'
// lock.
func (l compaction) Bound(ctx context.Context, bytes int64, limit int) (c changelog.Compacted, err error) {
	c.Past, err = l.pastData(ctx)
	if err == nil && (c.Past < 0 || c.Past > bytes) {
		err = l.inStep(ctx, &c, func(tx pgx.Tx) error { return shrink(ctx, tx, &c, bytes, limit) })
	}
	if err != nil {
		return changelog.Compacted{}, fmt.Errorf("bound the past: %w", l.classify(err))
	}
	return c, nil
}

const pastDataSQL = `
	SELECT coalesce((
		SELECT b.value::bigint
		FROM meta AS b, meta AS stamp, meta AS swept
		WHERE b.name = 'past_bytes' AND stamp.name = 'past_swept' AND swept.name = 'swept' AND stamp.value = swept.value), -1)`

// pastData reads the bytes of past; -1 if they are not known.
func (l *database) pastData(ctx context.Context) (bytes int64, err error) {
	err = l.pool.QueryRow(ctx, pastDataSQL).Scan(&bytes)
	return bytes, err
}

// countStep is how many rows of past are added up by one statement.
const countStep = 10_000

// countPast adds past up, and notes the sum.
func countPast(ctx context.Context, tx pgx.Tx) (bytes int64, err error) {
	for last, n := int64(0), int64(countStep); n == countStep; {
		var some int64
		err := tx.QueryRow(ctx, `
			SELECT count(*), coalesce(max(id), $1::bigint), coalesce(sum(bytes), 0)::bigint
			FROM (SELECT id, octet_length(key) + octet_length(value) AS bytes FROM past
			      WHERE id > $1::bigint ORDER BY id LIMIT $2::bigint) AS next`, last, countStep).Scan(&n, &last, &some)
		if err != nil {
			return 0, err
		}
		bytes += some
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO meta (name, value)
		SELECT 'past_bytes', $1::bigint::text
		UNION ALL
		SELECT 'past_swept', value FROM meta WHERE name = 'swept'
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, bytes)
	return bytes, err
}

// forgetPastData says that the bytes of past are not known.
func forgetPastData(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM meta WHERE name = 'past_swept'`)
	return err
}

// shrink deletes rows if those of past are too many.
func shrink(ctx context.Context, tx pgx.Tx, c *changelog.Compacted, bytes int64, limit int) (err error) {
	if err = tx.QueryRow(ctx, pastDataSQL).Scan(&c.Past); err == nil && c.Past < 0 {
		c.Past, err = countPast(ctx, tx)
	}
	if err != nil || c.Past <= bytes {
		return err
	}
	rows, err := tx.Query(ctx, `
		SELECT id, key, until_id, octet_length(key) + octet_length(value)
		FROM past ORDER BY expires, id LIMIT $1::bigint`, limit)
	if err != nil {
		return err
	}
	first, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o changelog.Old, err error) {
		return o, row.Scan(&o.ID, &o.Key, &o.UntilID, &o.Bytes)
	})
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
	return tx.QueryRow(ctx, `SELECT value::bigint FROM meta WHERE name = 'past_bytes'`).Scan(&c.Past)
}
