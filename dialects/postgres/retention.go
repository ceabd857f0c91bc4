package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// useRetention notes in table kept whether past is in use. since is the revision from which on it has
// been, or negative.
func useRetention(ctx context.Context, tx pgx.Tx, retention *changelog.Retention, since, floor int64) (err error) {
	switch {
	case retention == nil && since >= 0:
		_, err = tx.Exec(ctx, `DELETE FROM kept`)
	case retention != nil && since < 0:
		_, err = tx.Exec(ctx, `INSERT INTO kept (prefix, lost) VALUES ('', $1)`, floor)
	}
	return err
}

// move copies those of the rows to past that a step of compaction deletes and that retention names, and notes
// what is lost of the others.
func move(ctx context.Context, tx pgx.Tx, swept, upto int64, retention *changelog.Retention) (kept int64, err error) {
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
func oldRows(ctx context.Context, tx pgx.Tx, swept, upto int64) (old []changelog.Old, err error) {
	rows, err := tx.Query(ctx, `
		SELECT l.id, l.key, l.at, l.deleted, coalesce(p.id, 0)
		FROM log AS l
		LEFT JOIN LATERAL (
			SELECT o.id, o.deleted FROM log AS o
			WHERE o.key = l.key AND o.id < l.id
			ORDER BY o.id DESC LIMIT 1) AS p ON NOT p.deleted
		WHERE l.id > $1 AND l.id <= $2
		ORDER BY l.id`, swept, upto)
	if err != nil {
		return nil, err
	}
	var o changelog.Old
	var deleted bool
	_, err = pgx.ForEachRow(rows, []any{&o.UntilID, &o.Key, &o.UntilAt, &deleted, &o.ID}, func() error {
		if o.ID != 0 {
			old = append(old, o)
		}
		if deleted {
			o.ID = o.UntilID
			old = append(old, o)
		}
		return nil
	})
	return old, err
}

// insertPast copies rows from log to past.
func insertPast(ctx context.Context, tx pgx.Tx, rows []changelog.Old) (kept int64, err error) {
	var id, untilID, untilAt, expires []int64
	for _, o := range rows {
		id, untilID = append(id, o.ID), append(untilID, o.UntilID)
		untilAt, expires = append(untilAt, o.UntilAt), append(expires, o.Expires)
	}
	err = tx.QueryRow(ctx, `
		WITH moved AS (
			INSERT INTO past (id, key, create_id, deleted, at, until_id, until_at, expires, author, audit_id, value)
			SELECT l.id, l.key, l.create_id, l.deleted, l.at, r.until_id, r.until_at, r.expires, l.author, l.audit_id, l.value
			FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS r (id, until_id, until_at, expires)
			CROSS JOIN LATERAL (SELECT * FROM log WHERE log.id = r.id LIMIT 1) AS l
			RETURNING octet_length(key) + octet_length(value) AS bytes
		), total AS (
			SELECT count(*) AS rows, coalesce(sum(bytes), 0)::bigint AS bytes FROM moved
		), noted AS (
			UPDATE meta SET value = (value::bigint + (SELECT bytes FROM total))::text WHERE name = 'past_bytes'
		)
		SELECT rows FROM total`, id, untilID, untilAt, expires).Scan(&kept)
	return kept, err
}

// beyond adds what n rows in past of each key leave no room for.
func beyond(ctx context.Context, tx pgx.Tx, lost []changelog.Cut, n int, keys []string) ([]changelog.Cut, error) {
	rows, err := tx.Query(ctx, `
		SELECT k.key, p.id, p.until_id
		FROM unnest($1::text[]) AS k (key)
		CROSS JOIN LATERAL (
			SELECT o.id, o.until_id FROM past AS o
			WHERE o.key = k.key
			ORDER BY o.id DESC LIMIT 1 OFFSET $2::bigint) AS p`, keys, n)
	if err != nil {
		return nil, err
	}
	var c changelog.Cut
	_, err = pgx.ForEachRow(rows, []any{&c.Key, &c.ID, &c.Until}, func() error {
		lost = append(lost, c)
		return nil
	})
	return lost, err
}

// lose deletes from past what is lost, and notes that. LIMIT makes the planner look each key up in the
// index, whatever it thinks of the size of the table.
func lose(ctx context.Context, tx pgx.Tx, lost []changelog.Cut) (deleted int64, err error) {
	if len(lost) == 0 {
		return 0, nil
	}
	keys, ids := make([]string, len(lost)), make([]int64, len(lost))
	for i, c := range lost {
		keys[i], ids[i] = c.Key, c.ID
	}
	err = tx.QueryRow(ctx, `
		WITH gone AS (
			DELETE FROM past WHERE id = ANY (ARRAY(
				SELECT p.id
				FROM unnest($1::text[], $2::bigint[]) AS c (key, id)
				CROSS JOIN LATERAL (
					SELECT o.id FROM past AS o
					WHERE o.key = c.key AND o.id <= c.id
					ORDER BY o.id LIMIT 1000000000) AS p))
			RETURNING octet_length(key) + octet_length(value) AS bytes
		), total AS (
			SELECT count(*) AS rows, coalesce(sum(bytes), 0)::bigint AS bytes FROM gone
		), noted AS (
			UPDATE meta SET value = (value::bigint - (SELECT bytes FROM total))::text WHERE name = 'past_bytes'
		)
		SELECT rows FROM total`, keys, ids).Scan(&deleted)
	if err != nil {
		return 0, err
	}
	var prefixes []string
	var revisions []int64
	for prefix, revision := range changelog.Lost(lost) {
		prefixes, revisions = append(prefixes, prefix), append(revisions, revision)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO kept (prefix, lost)
		SELECT * FROM unnest($1::text[], $2::bigint[])
		ON CONFLICT (prefix) DO UPDATE SET lost = greatest(kept.lost, excluded.lost)`, prefixes, revisions)
	return deleted, err
}
