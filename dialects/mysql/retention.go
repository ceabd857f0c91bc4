package mysql

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// useRetention notes in table kept whether past is in use. since is the revision from which on it has
// been, or negative.
func useRetention(ctx context.Context, tx *txn, retention *changelog.Retention, since, floor int64) (err error) {
	switch {
	case retention == nil && since >= 0:
		_, err = tx.ExecContext(ctx, `DELETE FROM kept`)
	case retention != nil && since < 0:
		_, err = tx.ExecContext(ctx, `INSERT INTO kept (prefix, lost) VALUES ('', ?)`, floor)
	}
	return err
}

// move copies those of the rows to past that a step of compaction deletes and that retention names, and notes
// what is lost of the others.
func move(ctx context.Context, tx *txn, swept, upto int64, retention *changelog.Retention) (kept int64, err error) {
	old, err := oldRows(ctx, tx, swept, upto)
	if err != nil {
		return 0, err
	}
	sorted := retention.Sort(old, time.Now().UnixMilli())
	if len(sorted.Kept) > 0 {
		if kept, err = insertPast(ctx, tx, sorted.Kept); err != nil {
			return 0, err
		}
	}
	lost := sorted.Lost
	for n, keys := range sorted.Counts {
		if lost, err = beyond(ctx, tx, lost, n, keys); err != nil {
			return 0, err
		}
	}
	_, err = lose(ctx, tx, lost)
	return kept, err
}

// oldRows returns the rows that the rows in (swept, upto] supersede, and the tombstones among these.
// Each key's are in order. A tombstone is not superseded: it is among the rows, or was deleted when it
// was.
func oldRows(ctx context.Context, tx *txn, swept, upto int64) (old []changelog.Old, err error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT l.id, l.`+"`key`, l.`at`"+`, l.deleted, COALESCE(p.id, 0)
		FROM log AS l FORCE INDEX (PRIMARY)
		LEFT JOIN log AS p
		       ON p.id = (SELECT o.id FROM log AS o
		                  WHERE o.`+"`key` = l.`key`"+` AND o.id < l.id
		                  ORDER BY o.id DESC LIMIT 1)
		      AND p.deleted = 0
		WHERE l.id > ? AND l.id <= ?
		ORDER BY l.id`, swept, upto)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o changelog.Old
		var deleted bool
		if err := rows.Scan(&o.UntilID, &o.Key, &o.UntilAt, &deleted, &o.ID); err != nil {
			return nil, err
		}
		if o.ID != 0 {
			old = append(old, o)
		}
		if deleted {
			o.ID = o.UntilID
			old = append(old, o)
		}
	}
	return old, rows.Err()
}

// insertPast copies rows from log to past. They are a table of constants that is joined to log by its
// primary key.
func insertPast(ctx context.Context, tx *txn, rows []changelog.Old) (kept int64, err error) {
	args, ids := make([]any, 0, 4*len(rows)), make([]any, len(rows))
	for i, o := range rows {
		args, ids[i] = append(args, o.ID, o.UntilID, o.UntilAt, o.Expires), o.ID
	}
	r, err := tx.ExecContext(ctx, `
		INSERT INTO past (id, `+"`key`, create_id, deleted, `at`"+`, until_id, until_at, expires, author, audit_id, value)
		SELECT STRAIGHT_JOIN l.id, l.`+"`key`, l.create_id, l.deleted, l.`at`"+`, r.until_id, r.until_at, r.expires, l.author, l.audit_id, l.value
		FROM (SELECT ? AS id, ? AS until_id, ? AS until_at, ? AS expires`+strings.Repeat(` UNION ALL SELECT ?, ?, ?, ?`, len(rows)-1)+`) AS r
		JOIN log AS l ON l.id = r.id`, args...)
	if err != nil {
		return 0, err
	}
	if kept, err = r.RowsAffected(); err != nil {
		return 0, err
	}
	return kept, addPast(ctx, tx, 1, ids)
}

// beyond adds what n rows in past of each key leave no room for.
func beyond(ctx context.Context, tx *txn, lost []changelog.Cut, n int, keys []string) ([]changelog.Cut, error) {
	args := []any{n}
	for _, key := range keys {
		args = append(args, []byte(key))
	}
	rows, err := tx.QueryContext(ctx, `
		SELECT STRAIGHT_JOIN p.`+"`key`"+`, p.id, p.until_id
		FROM (SELECT (SELECT o.id FROM past AS o
		              WHERE o.`+"`key`"+` = k.k
		              ORDER BY o.id DESC LIMIT 1 OFFSET ?) AS id
		      FROM (SELECT ? AS k`+strings.Repeat(` UNION ALL SELECT ?`, len(keys)-1)+`) AS k) AS first
		JOIN past AS p ON p.id = first.id`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c changelog.Cut
		if err := rows.Scan(&c.Key, &c.ID, &c.Until); err != nil {
			return nil, err
		}
		lost = append(lost, c)
	}
	return lost, rows.Err()
}

// lose deletes from past what is lost, and notes that. Ids are fetched first: a DELETE with such a
// condition would lock all versions of the keys.
func lose(ctx context.Context, tx *txn, lost []changelog.Cut) (deleted int64, err error) {
	if len(lost) == 0 {
		return 0, nil
	}
	args := make([]any, 0, 2*len(lost))
	for _, c := range lost {
		args = append(args, []byte(c.Key), c.ID)
	}
	rows, err := tx.QueryContext(ctx, `
		SELECT id FROM past FORCE INDEX (past_key_id)
		WHERE `+"(`key` = ? AND id <= ?)"+strings.Repeat(" OR (`key` = ? AND id <= ?)", len(lost)-1), args...)
	if err != nil {
		return 0, err
	}
	ids, err := scanIDs(rows)
	if err != nil {
		return 0, err
	}
	for chunk := range slices.Chunk(ids, deleteStep) {
		if err := addPast(ctx, tx, -1, chunk); err != nil {
			return 0, err
		}
		r, err := tx.ExecContext(ctx, `DELETE FROM past WHERE id IN (?`+strings.Repeat(`, ?`, len(chunk)-1)+`)`, chunk...)
		if err != nil {
			return 0, err
		}
		n, err := r.RowsAffected()
		if deleted += n; err != nil {
			return 0, err
		}
	}
	return deleted, noteLost(ctx, tx, lost)
}

// deleteStep is how many rows one statement deletes.
const deleteStep = 1000

func noteLost(ctx context.Context, tx *txn, lost []changelog.Cut) error {
	var args []any
	for prefix, revision := range changelog.Lost(lost) {
		args = append(args, []byte(prefix), revision)
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO kept (prefix, lost) VALUES (?, ?)`+strings.Repeat(`, (?, ?)`, len(args)/2-1)+`
		ON DUPLICATE KEY UPDATE lost = GREATEST(lost, VALUES(lost))`, args...)
	return err
}
