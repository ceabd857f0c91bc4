package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The reads of a log of raw keys are those of read.go with two columns more.

func (l reader) rawRows(ctx context.Context, after int64, limit int) ([]changelog.Row, error) {
	return scan.RawRows(l.reads.QueryContext(ctx, `
		SELECT id, key, create_id, deleted, at, value, version, lease
		FROM log
		WHERE id > ?
		ORDER BY id
		LIMIT ?`, after, limit))
}

func (l reader) rawState(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	return scan.RawPage(l.reads.QueryContext(ctx, `
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, l.value, l.version, l.lease
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

func (l reader) rawSteps(ctx context.Context, from, to string, after, through int64, limit int) ([]changelog.Step, error) {
	return scan.RawSteps(l.reads.QueryContext(ctx, `
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, l.value, l.version, l.lease,
		       p.id, p.create_id, p.at, p.value, p.version, p.lease
		FROM log AS l NOT INDEXED
		LEFT JOIN log AS p
		       ON p.id = (SELECT max(o.id) FROM log AS o WHERE o.key = l.key AND o.id < l.id)
		      AND p.deleted = 0
		WHERE l.id > ? AND l.id <= ? AND l.key >= ? AND l.key < ?
		ORDER BY l.id
		LIMIT ?`, after, through, from, to, limit))
}

// Keys is State without values.
func (l reader) Keys(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	rows, err := scan.RawKeys(l.reads.QueryContext(ctx, `
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, l.version, l.lease
		FROM log AS k INDEXED BY log_key_id
		CROSS JOIN log AS l ON l.id = k.id
		WHERE k.key >= ?1 AND k.key < ?2 AND k.id <= ?3
		  AND k.id = (SELECT n.id FROM log AS n
		              WHERE n.key = k.key AND n.id <= ?3
		              ORDER BY n.id DESC LIMIT 1)
		  AND l.deleted = 0
		ORDER BY k.key
		LIMIT ?4`, from, to, revision, limit))
	if err == nil {
		err = l.checkFloor(ctx, revision)
	}
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", classify(err))
	}
	return rows, nil
}

// valuesChunk is how many values one query reads.
const valuesChunk = 1000

// Values returns the values of rows by id.
func (l reader) Values(ctx context.Context, ids []int64) (map[int64][]byte, error) {
	values := make(map[int64][]byte, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), valuesChunk)
		rows, err := l.reads.QueryContext(ctx, `
			SELECT id, value FROM log WHERE id IN (SELECT value FROM json_each(?))`, list(ids[:n]))
		if err := scan.Values(values, rows, err); err != nil {
			return nil, fmt.Errorf("read values: %w", classify(err))
		}
		ids = ids[n:]
	}
	return values, nil
}

// list returns ids as SQLite's function json_each takes them.
func list(ids []int64) string {
	text, _ := json.Marshal(ids) // numbers cannot fail
	return string(text)
}
