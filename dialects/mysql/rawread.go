package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The reads of a log of raw keys are those of read.go with two columns more.

func (l reader) rawRows(ctx context.Context, after int64, limit int) (out []changelog.Row, err error) {
	err = l.readKnown(ctx, (*changelog.Witness).CheckRows, func(rows *sql.Rows) (err error) {
		out, err = scan.NextRawRows(rows)
		return err
	}, "SELECT id, `key`, create_id, deleted, `at`, value, version, lease"+`
		FROM log
		WHERE id > ?
		ORDER BY id
		LIMIT ?`, after, limit)
	return out, err
}

func (l reader) rawState(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	return l.page(ctx, scan.NextRawPage, `
		SELECT STRAIGHT_JOIN l.id, l.`+"`key`, l.create_id, l.deleted, l.`at`, l.value, l.version, l.lease"+`
		FROM log AS k FORCE INDEX (log_key_id)
		JOIN log AS l ON l.id = k.id
		WHERE k.`+"`key` >= ? AND k.`key`"+` < ? AND k.id <= ?
		  AND k.id = (SELECT n.id FROM log AS n
		              WHERE n.`+"`key` = k.`key`"+` AND n.id <= ?
		              ORDER BY n.id DESC LIMIT 1)
		  AND l.deleted = 0
		ORDER BY k.`+"`key`"+`
		LIMIT ?`, []byte(from), []byte(to), revision, revision, limit)
}

func (l reader) rawSteps(ctx context.Context, from, to string, after, through int64, limit int) ([]changelog.Step, error) {
	return scan.RawSteps(l.db.QueryContext(ctx, `
		SELECT l.id, l.`+"`key`, l.create_id, l.deleted, l.`at`, l.value, l.version, l.lease,"+`
		       p.id, p.create_id, p.`+"`at`"+`, p.value, p.version, p.lease
		FROM log AS l FORCE INDEX (PRIMARY)
		LEFT JOIN log AS p
		       ON p.id = (SELECT o.id FROM log AS o
		                  WHERE o.`+"`key` = l.`key`"+` AND o.id < l.id
		                  ORDER BY o.id DESC LIMIT 1)
		      AND p.deleted = 0
		WHERE l.id > ? AND l.id <= ? AND l.`+"`key` >= ? AND l.`key`"+` < ?
		ORDER BY l.id
		LIMIT ?`, after, through, []byte(from), []byte(to), limit))
}

// Keys is State without values.
func (l reader) Keys(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	rows, err := scan.RawKeys(l.db.QueryContext(ctx, `
		SELECT STRAIGHT_JOIN l.id, l.`+"`key`, l.create_id, l.deleted, l.`at`, l.version, l.lease"+`
		FROM log AS k FORCE INDEX (log_key_id)
		JOIN log AS l ON l.id = k.id
		WHERE k.`+"`key` >= ? AND k.`key`"+` < ? AND k.id <= ?
		  AND k.id = (SELECT n.id FROM log AS n
		              WHERE n.`+"`key` = k.`key`"+` AND n.id <= ?
		              ORDER BY n.id DESC LIMIT 1)
		  AND l.deleted = 0
		ORDER BY k.`+"`key`"+`
		LIMIT ?`, []byte(from), []byte(to), revision, revision, limit))
	if err == nil {
		err = l.checkFloor(ctx, revision)
	}
	if err == nil {
		err = l.settle(ctx, revision)
	}
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", l.classify(err))
	}
	return rows, nil
}

// idsChunk is how many ids one statement names. MariaDB makes a table of a longer list.
const idsChunk = 500

// Values returns the values of rows by id.
func (l reader) Values(ctx context.Context, ids []int64) (map[int64][]byte, error) {
	values := make(map[int64][]byte, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), idsChunk)
		err := l.readKnown(ctx, (*changelog.Witness).Check, func(rows *sql.Rows) error { return scan.NextValues(values, rows) },
			`SELECT id, value FROM log WHERE id IN `+places(n), idArgs(ids[:n])...)
		if err != nil {
			return nil, fmt.Errorf("read values: %w", l.classify(err))
		}
		ids = ids[n:]
	}
	return values, nil
}

// places returns a list of n placeholders.
func places(n int) string { return `(?` + strings.Repeat(`, ?`, n-1) + `)` }

func idArgs(ids []int64) []any {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return args
}
