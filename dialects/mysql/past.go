package mysql

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Past returns the rows in force at a revision that may be below the floor. They are durable.
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
	if err == nil {
		err = l.settle(ctx, revision)
	}
	if err != nil {
		return nil, fmt.Errorf("read the past: %w", l.classify(err))
	}
	return rows, nil
}

// past is one statement, because rows move from log to past. In past it skips in the index (key, id)
// from the newest version of a key to that of the next, for however many a key has there. A tombstone
// is superseded by itself, so it is in force at no revision.
func (l historian) past(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.HistoryRow, error) {
	return scan.PastRows(l.db.QueryContext(ctx, `
		(SELECT STRAIGHT_JOIN p.id, p.`+"`key` AS `key`, p.create_id, p.deleted, p.`at`, LENGTH(p.value)"+`
		 FROM (SELECT `+"`key`"+`, MAX(id) AS id
		       FROM past FORCE INDEX (past_key_id)
		       WHERE `+"`key` >= ? AND `key`"+` < ? AND id <= ?
		       GROUP BY `+"`key`"+`) AS newest
		 JOIN past AS p ON p.id = newest.id
		 WHERE p.until_id > ?
		 ORDER BY p.`+"`key`"+`
		 LIMIT ?)
		UNION ALL
		(SELECT STRAIGHT_JOIN l.id, l.`+"`key` AS `key`, l.create_id, l.deleted, l.`at`, LENGTH(l.value)"+`
		 FROM log AS k FORCE INDEX (log_key_id)
		 JOIN log AS l ON l.id = k.id
		 WHERE k.`+"`key` >= ? AND k.`key`"+` < ? AND k.id <= ?
		   AND k.id = (SELECT n.id FROM log AS n
		               WHERE n.`+"`key` = k.`key`"+` AND n.id <= ?
		               ORDER BY n.id DESC LIMIT 1)
		   AND l.deleted = 0
		 ORDER BY k.`+"`key`"+`
		 LIMIT ?)
		ORDER BY `+"`key`"+`
		LIMIT ?`, []byte(from), []byte(to), revision, revision, limit,
		[]byte(from), []byte(to), revision, revision, limit, limit))
}

// checkKnown refuses a revision of which something in the range may be missing. What is known only
// becomes less: if it is enough now, it was when the rows were read.
func (l historian) checkKnown(ctx context.Context, from, to string, revision int64) error {
	k, err := l.known(ctx, from, to)
	if err != nil {
		return err
	}
	if key, one := changelog.OneKey(from, to); one {
		err = l.db.QueryRowContext(ctx, `
			SELECT COALESCE((SELECT id FROM past WHERE `+"`key`"+` = ? AND ? >= 0 AND until_id > ? ORDER BY id LIMIT 1),
			                (SELECT id FROM log WHERE `+"`key`"+` = ? ORDER BY id LIMIT 1), 0)`,
			[]byte(key), k.Since, k.Since, []byte(key)).Scan(&k.Oldest)
	}
	if err != nil {
		return err
	}
	return k.Check(revision)
}

// known reads what is known of all keys in a range.
func (l historian) known(ctx context.Context, from, to string) (k changelog.Known, err error) {
	err = l.db.QueryRowContext(ctx, `
		SELECT (SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor'),
		       COALESCE((SELECT lost FROM kept WHERE prefix = ''), -1),
		       COALESCE((SELECT MAX(lost) FROM kept WHERE prefix = ? OR prefix >= ? AND prefix < ? AND prefix <> ''), 0)`,
		[]byte(changelog.ResourceOf(from)), []byte(from), []byte(to)).Scan(&k.Floor, &k.Since, &k.Lost)
	return k, err
}

// KnownFrom returns the revision from which on the keys in a range are known.
func (l historian) KnownFrom(ctx context.Context, from, to string) (int64, error) {
	k, err := l.known(ctx, from, to)
	if err != nil {
		return 0, fmt.Errorf("read how far back the past is known: %w", l.classify(err))
	}
	return k.From(), nil
}
