package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Past returns the rows in force at a revision that may be below the floor.
func (l historian) Past(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.HistoryRow, error) {
	if l.kind != changelog.KindAPI {
		return nil, fmt.Errorf("read the past: %w", changelog.ErrKind)
	}
	if from >= to {
		return nil, nil
	}
	out, err := l.past(ctx, from, to, revision, limit)
	if err != nil {
		return nil, fmt.Errorf("read the past: %w", l.classify(err))
	}
	return out, nil
}

// past is one statement, because rows move from log to past. In both it steps from key to key, as
// state does. A tombstone in past is superseded by itself, so it is in force at no revision. What is
// known is read after the rows, in the same round trip, and only becomes less: if it is enough then,
// it was when the rows were read.
func (l historian) past(ctx context.Context, from, to string, revision int64, limit int) (out []changelog.HistoryRow, err error) {
	var b pgx.Batch
	b.Queue(`
		WITH RECURSIVE keys AS (
			(SELECT key FROM log WHERE key >= $1 AND key < $2 ORDER BY key LIMIT 1)
			UNION ALL
			SELECT (SELECT n.key FROM log AS n
			        WHERE n.key > keys.key AND n.key < $2
			        ORDER BY n.key LIMIT 1)
			FROM keys
			WHERE keys.key IS NOT NULL
		), past_keys AS (
			(SELECT key FROM past WHERE key >= $1 AND key < $2 ORDER BY key LIMIT 1)
			UNION ALL
			SELECT (SELECT n.key FROM past AS n
			        WHERE n.key > past_keys.key AND n.key < $2
			        ORDER BY n.key LIMIT 1)
			FROM past_keys
			WHERE past_keys.key IS NOT NULL
		)
		SELECT * FROM (
			(SELECT p.id, p.key, p.create_id, p.deleted, p.at, octet_length(p.value)
			 FROM past_keys
			 CROSS JOIN LATERAL (
				SELECT * FROM past
				WHERE past.key = past_keys.key AND past.id <= $3
				ORDER BY past.id DESC LIMIT 1) AS p
			 WHERE p.until_id > $3
			 LIMIT $4)
			UNION ALL
			(SELECT l.id, l.key, l.create_id, l.deleted, l.at, octet_length(l.value)
			 FROM keys
			 CROSS JOIN LATERAL (
				SELECT * FROM log
				WHERE log.key = keys.key AND log.id <= $3
				ORDER BY log.id DESC LIMIT 1) AS l
			 WHERE NOT l.deleted
			 LIMIT $4)) AS either
		ORDER BY key
		LIMIT $4`, bound(from), bound(to), revision, limit)
	key, one := changelog.OneKey(from, to)
	b.Queue(`
		SELECT floor.value::bigint, coalesce(since.lost, -1),
		       coalesce((SELECT max(lost) FROM kept WHERE prefix = $1 OR prefix >= $2 AND prefix < $3 AND prefix <> ''), 0),
		       CASE WHEN $5 THEN
		           coalesce((SELECT id FROM past WHERE key = $4 AND until_id > since.lost ORDER BY id LIMIT 1),
		                    (SELECT id FROM log WHERE key = $4 ORDER BY id LIMIT 1), 0)
		       ELSE 0 END
		FROM meta AS floor
		LEFT JOIN kept AS since ON since.prefix = ''
		WHERE floor.name = 'floor'`, bound(changelog.ResourceOf(from)), bound(from), bound(to), bound(key), one)
	r := l.pool.SendBatch(ctx, &b)
	defer r.Close()
	rows, err := r.Query()
	if err != nil {
		return nil, err
	}
	if out, err = pgx.CollectRows(rows, scanPast); err != nil {
		return nil, err
	}
	var k changelog.Known
	if err := r.QueryRow().Scan(&k.Floor, &k.Since, &k.Lost, &k.Oldest); err != nil {
		return nil, err
	}
	if err := k.Check(revision); err != nil {
		return nil, err
	}
	return out, r.Close()
}

func scanPast(row pgx.CollectableRow) (r changelog.HistoryRow, err error) {
	err = row.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Size)
	return r, err
}

// KnownFrom returns the revision from which on the keys in a range are known.
func (l historian) KnownFrom(ctx context.Context, from, to string) (int64, error) {
	var k changelog.Known
	err := l.pool.QueryRow(ctx, `
		SELECT floor.value::bigint, coalesce(since.lost, -1),
		       coalesce((SELECT max(lost) FROM kept WHERE prefix = $1 OR prefix >= $2 AND prefix < $3 AND prefix <> ''), 0)
		FROM meta AS floor
		LEFT JOIN kept AS since ON since.prefix = ''
		WHERE floor.name = 'floor'`, bound(changelog.ResourceOf(from)), bound(from), bound(to)).Scan(&k.Floor, &k.Since, &k.Lost)
	if err != nil {
		return 0, fmt.Errorf("read how far back the past is known: %w", l.classify(err))
	}
	return k.From(), nil
}
