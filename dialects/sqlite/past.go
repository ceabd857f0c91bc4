package sqlite

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
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
	rows, err := l.past(ctx, from, to, revision, limit)
	if err == nil {
		err = l.checkKnown(ctx, from, to, revision)
	}
	if err != nil {
		return nil, fmt.Errorf("read the past: %w", classify(err))
	}
	return rows, nil
}

// past is one statement, because rows move from log to past. In past it steps from key to key, since
// a key may have very many versions there, and stops when the page is full. A tombstone is superseded by itself, so it is in force at no revision.
func (l historian) past(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.HistoryRow, error) {
	return scan.PastRows(l.reads.QueryContext(ctx, `
		WITH RECURSIVE keys (key) AS (
			SELECT (SELECT key FROM past WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT 1)
			UNION ALL
			SELECT (SELECT n.key FROM past AS n WHERE n.key > keys.key AND n.key < ?2 ORDER BY n.key LIMIT 1)
			FROM keys
			WHERE keys.key IS NOT NULL
		)
		SELECT * FROM (
			SELECT p.id, p.key, p.create_id, p.deleted, p.at, octet_length(p.value)
			FROM keys
			CROSS JOIN past AS p
			        ON p.id = (SELECT n.id FROM past AS n
			                   WHERE n.key = keys.key AND n.id <= ?3
			                   ORDER BY n.id DESC LIMIT 1)
			WHERE p.until_id > ?3
			LIMIT ?4)
		UNION ALL
		SELECT * FROM (
			SELECT l.id, l.key, l.create_id, l.deleted, l.at, octet_length(l.value)
			FROM log AS k INDEXED BY log_key_id
			CROSS JOIN log AS l ON l.id = k.id
			WHERE k.key >= ?1 AND k.key < ?2 AND k.id <= ?3
			  AND k.id = (SELECT n.id FROM log AS n
			              WHERE n.key = k.key AND n.id <= ?3
			              ORDER BY n.id DESC LIMIT 1)
			  AND l.deleted = 0
			ORDER BY k.key
			LIMIT ?4)
		ORDER BY 2
		LIMIT ?4`, from, to, revision, limit))
}

// checkKnown refuses a revision of which something in the range may be missing. What is known only
// becomes less: if it is enough now, it was when the rows were read.
func (l historian) checkKnown(ctx context.Context, from, to string, revision int64) error {
	k, err := l.known(ctx, from, to)
	if err != nil {
		return err
	}
	if key, one := changelog.OneKey(from, to); one {
		err = l.reads.QueryRowContext(ctx, `
			SELECT coalesce((SELECT id FROM past WHERE key = ?1 AND ?2 >= 0 AND until_id > ?2 ORDER BY id LIMIT 1),
			                (SELECT id FROM log WHERE key = ?1 ORDER BY id LIMIT 1), 0)`, key, k.Since).Scan(&k.Oldest)
	}
	if err != nil {
		return err
	}
	return k.Check(revision)
}

// known reads what is known of all keys in a range.
func (l historian) known(ctx context.Context, from, to string) (k changelog.Known, err error) {
	err = l.reads.QueryRowContext(ctx, `
		SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'),
		       coalesce((SELECT lost FROM kept WHERE prefix = ''), -1),
		       coalesce((SELECT max(lost) FROM kept WHERE prefix = ?1 OR prefix >= ?2 AND prefix < ?3 AND prefix <> ''), 0)`,
		changelog.ResourceOf(from), from, to).Scan(&k.Floor, &k.Since, &k.Lost)
	return k, err
}

// KnownFrom returns the revision from which on the keys in a range are known.
func (l historian) KnownFrom(ctx context.Context, from, to string) (int64, error) {
	k, err := l.known(ctx, from, to)
	if err != nil {
		return 0, fmt.Errorf("read how far back the past is known: %w", classify(err))
	}
	return k.From(), nil
}
