package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Reads of the past fetch their rows first and the floor after them. The floor only
// rises, and rises in the transaction that deletes: if it still permits the revision
// then nothing was missing when the rows were read.

// Head reads the end of the log.
func (l reader) Head(ctx context.Context) (changelog.Head, error) {
	var h changelog.Head
	err := l.reads.QueryRowContext(ctx, `
		SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'),
		       coalesce((SELECT max(id) FROM log), 0)`).Scan(&h.Floor, &h.Revision)
	if err != nil {
		return changelog.Head{}, fmt.Errorf("read head: %w", classify(err))
	}
	h.Revision = max(h.Revision, h.Floor)
	return h, nil
}

// checkFloor refuses a revision that is compacted.
func (l reader) checkFloor(ctx context.Context, revision int64) error {
	var floor int64
	err := l.reads.QueryRowContext(ctx, `SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'`).Scan(&floor)
	if err == nil && revision < floor {
		return changelog.ErrCompacted
	}
	return err
}

// Rows returns rows after a revision in revision order.
func (l reader) Rows(ctx context.Context, after int64, limit int) ([]changelog.Row, error) {
	read := l.rows
	if l.kind == changelog.KindEtcd {
		read = l.rawRows
	}
	rows, err := read(ctx, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", classify(err))
	}
	return rows, nil
}

func (l reader) rows(ctx context.Context, after int64, limit int) ([]changelog.Row, error) {
	return scan.Rows(l.reads.QueryContext(ctx, `
		SELECT id, key, create_id, deleted, at, value
		FROM log
		WHERE id > ?
		ORDER BY id
		LIMIT ?`, after, limit))
}

// State returns the rows in force at a revision.
func (l reader) State(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	read := l.state
	if l.kind == changelog.KindEtcd {
		read = l.rawState
	}
	rows, err := read(ctx, from, to, revision, limit)
	if err == nil {
		err = l.checkFloor(ctx, revision)
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", classify(err))
	}
	return rows, nil
}

// state walks the index (key, id) in order as far as the limit asks, and fetches only rows
// that are the last of their key.
func (l reader) state(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	return scan.Rows(l.reads.QueryContext(ctx, `
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, l.value
		FROM log AS k INDEXED BY log_key_id
		CROSS JOIN log AS l ON l.id = k.id
		WHERE k.key >= ?1 AND k.key < ?2 AND k.id <= ?3
		  AND k.id = (SELECT n.id FROM log AS n
		              WHERE n.key = k.key AND n.id <= ?3
		              ORDER BY n.id DESC LIMIT 1)
		  AND l.deleted = 0
		ORDER BY k.key
		LIMIT ?4`, from, to, revision, limit))
}

// Count returns how many rows State would return.
func (l reader) Count(ctx context.Context, from, to string, revision int64) (int64, error) {
	var n int64
	err := l.reads.QueryRowContext(ctx, `
		SELECT count(*)
		FROM (SELECT key, max(id) AS id
		      FROM log INDEXED BY log_key_id
		      WHERE key >= ? AND key < ? AND id <= ?
		      GROUP BY key) AS newest
		CROSS JOIN log AS l ON l.id = newest.id
		WHERE l.deleted = 0`, from, to, revision).Scan(&n)
	if err == nil {
		err = l.checkFloor(ctx, revision)
	}
	if err != nil {
		return 0, fmt.Errorf("count state: %w", classify(err))
	}
	return n, nil
}

// Steps returns changes with what they replaced.
func (l reader) Steps(ctx context.Context, from, to string, after, through int64, limit int) ([]changelog.Step, error) {
	read := l.steps
	if l.kind == changelog.KindEtcd {
		read = l.rawSteps
	}
	steps, err := read(ctx, from, to, after, through, limit)
	if err == nil {
		err = l.checkFloor(ctx, after)
	}
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", classify(err))
	}
	return steps, nil
}

// steps walks the revisions, not the keys: the history is short, and the answer is wanted in
// this order.
func (l reader) steps(ctx context.Context, from, to string, after, through int64, limit int) ([]changelog.Step, error) {
	return scan.Steps(l.reads.QueryContext(ctx, `
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, l.value, p.id, p.create_id, p.at, p.value
		FROM log AS l NOT INDEXED
		LEFT JOIN log AS p
		       ON p.id = (SELECT max(o.id) FROM log AS o WHERE o.key = l.key AND o.id < l.id)
		      AND p.deleted = 0
		WHERE l.id > ? AND l.id <= ? AND l.key >= ? AND l.key < ?
		ORDER BY l.id
		LIMIT ?`, after, through, from, to, limit))
}

// Time returns the oldest row at or after a revision.
func (l reader) Time(ctx context.Context, revision int64) (found, at int64, err error) {
	err = l.reads.QueryRowContext(ctx, `
		SELECT id, at FROM (SELECT id, at FROM log WHERE id >= ?1 ORDER BY id LIMIT 1)
		UNION ALL
		SELECT id, at FROM (SELECT id, at FROM past WHERE id >= ?1 ORDER BY id LIMIT 1)
		ORDER BY id
		LIMIT 1`, revision).Scan(&found, &at)
	if err == sql.ErrNoRows {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read time: %w", classify(err))
	}
	return found, at, nil
}
