package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Two rows of meta have the bytes of keys and values in past, and how far compaction had looked then: if that is
// not how far it has looked now, the number is not known.

// Bound deletes rows of past that are too many. It looks whether there are any before it keeps others from
// writing.
func (l compaction) Bound(ctx context.Context, bytes int64, limit int) (c changelog.Compacted, err error) {
	l.changesPast.Lock()
	defer l.changesPast.Unlock()
	if c.Past, err = l.pastData(ctx); err == nil && c.Past < 0 && !l.pastHeld() {
		c.Past, err = l.countPast(ctx)
	}
	if err == nil && c.Past > bytes {
		err = l.transact(ctx, func(w *writer) (err error) {
			if l.pastHeld() {
				c.Busy = true
				return errNothing
			}
			if err := w.bound(&c, bytes, limit); err != nil {
				return err
			}
			return w.turn()
		})
	}
	if err != nil && err != errNothing {
		return changelog.Compacted{}, fmt.Errorf("bound the past: %w", classify(err))
	}
	return c, nil
}

// pastData reads the bytes of past; -1 if they are not known.
func (l *database) pastData(ctx context.Context) (bytes int64, err error) {
	err = l.reads.QueryRowContext(ctx, `
		SELECT coalesce((
			SELECT CAST(b.value AS INTEGER)
			FROM meta AS b, meta AS stamp, meta AS swept
			WHERE b.name = 'past_bytes' AND stamp.name = 'past_swept' AND swept.name = 'swept' AND stamp.value = swept.value), -1)`).Scan(&bytes)
	return bytes, err
}

// countStep is how many rows of past are added up at once.
const countStep = 10_000

// countPast adds past up, and notes the sum. Writers go on while it reads, but for those who change past.
func (l *database) countPast(ctx context.Context) (bytes int64, err error) {
	for last, n := int64(0), int64(countStep); n == countStep; {
		var some int64
		err := l.reads.QueryRowContext(ctx, `
			SELECT count(*), coalesce(max(id), ?1), coalesce(sum(bytes), 0)
			FROM (SELECT id, octet_length(key) + octet_length(value) AS bytes FROM past NOT INDEXED WHERE id > ?1 ORDER BY id LIMIT ?2)`,
			last, countStep).Scan(&n, &last, &some)
		if err != nil {
			return 0, err
		}
		bytes += some
	}
	return bytes, l.transact(ctx, func(w *writer) error {
		_, err := w.exec(`
			INSERT INTO meta (name, value)
			SELECT 'past_bytes', CAST(?1 AS TEXT)
			UNION ALL
			SELECT 'past_swept', value FROM meta WHERE name = 'swept'
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, bytes)
		if err != nil {
			return err
		}
		return w.turn()
	})
}

// addPast changes the number of bytes, for rows that have come to past or left it.
func (w *writer) addPast(bytes int64) error {
	_, err := w.exec(`UPDATE meta SET value = CAST(CAST(value AS INTEGER) + ?1 AS TEXT) WHERE name = 'past_bytes'`, bytes)
	return err
}

// forgetPastData says that the bytes of past are not known.
func (w *writer) forgetPastData() error {
	_, err := w.exec(`DELETE FROM meta WHERE name = 'past_swept'`)
	return err
}

// bound deletes rows if those of past, whose bytes are c.Past, are too many.
func (w *writer) bound(c *changelog.Compacted, bytes int64, limit int) (err error) {
	var first []changelog.Old
	err = w.rowsOf(`
		SELECT id, key, until_id, octet_length(key) + octet_length(value)
		FROM past INDEXED BY past_expires
		ORDER BY expires, id LIMIT ?`, []any{limit}, func(row []driver.Value) {
		first = append(first, changelog.Old{ID: row[0].(int64), Key: row[1].(string), UntilID: row[2].(int64), Bytes: row[3].(int64)})
	})
	if err != nil {
		return err
	}
	if len(first) == 0 { // the number is wrong
		c.Past = 0
		return w.forgetPastData()
	}
	if c.Deleted, err = w.lose(changelog.Cuts(changelog.Excess(first, c.Past, bytes))); err != nil {
		return err
	}
	return w.scan(`SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'past_bytes'`, nil, &c.Past)
}
