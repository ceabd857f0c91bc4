package sqlite

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// History returns changes with their authors.
func (l historian) History(ctx context.Context, q changelog.HistoryQuery) ([]changelog.HistoryRow, error) {
	rows, err := scan.History(l.reads.QueryContext(ctx, historySQL(q), q.Sizes, q.After, q.Through, q.Limit, q.From, q.To))
	if err != nil {
		return nil, fmt.Errorf("read history: %w", classify(err))
	}
	return rows, nil
}

// historySQL walks the revisions of both tables, or sorts those of a range of keys, which are in an
// index of each. What else there is of a change is fetched last.
func historySQL(q changelog.HistoryQuery) string {
	log, past, order := `log AS k NOT INDEXED WHERE`, `past AS k NOT INDEXED WHERE`, `DESC`
	if q.From != "" || q.To != "" {
		log = `log AS k INDEXED BY log_key_id WHERE k.key >= ?5 AND k.key < ?6 AND`
		past = `past AS k INDEXED BY past_key_id WHERE k.key >= ?5 AND k.key < ?6 AND`
	}
	if q.Oldest {
		order = `ASC`
	}
	some := ` k.id > ?2 AND k.id <= ?3 ORDER BY k.id ` + order + ` LIMIT ?4)`
	return `
		SELECT n.id, coalesce(l.key, p.key), coalesce(l.create_id, p.create_id), coalesce(l.deleted, p.deleted),
		       coalesce(l.at, p.at), CASE WHEN ?1 THEN coalesce(octet_length(l.value), octet_length(p.value), 0) ELSE 0 END, coalesce(l.audit_id, p.audit_id),
		       a.who, a.impersonator, a.verb, a.subresource, a.manager
		FROM (SELECT id FROM (SELECT k.id FROM ` + log + some + `
		      UNION ALL
		      SELECT id FROM (SELECT k.id FROM ` + past + some + `
		      ORDER BY id ` + order + ` LIMIT ?4) AS n
		LEFT JOIN log AS l ON l.id = n.id
		LEFT JOIN past AS p ON p.id = n.id
		LEFT JOIN author AS a ON a.id = coalesce(l.author, p.author)
		ORDER BY n.id ` + order
}

// OldValues returns the values of rows by id.
func (l historian) OldValues(ctx context.Context, ids []int64) (map[int64][]byte, error) {
	values := make(map[int64][]byte, len(ids))
	rows, err := l.reads.QueryContext(ctx, `
		SELECT id, value FROM log WHERE id IN (SELECT value FROM json_each(?1))
		UNION ALL
		SELECT id, value FROM past WHERE id IN (SELECT value FROM json_each(?1))`, list(ids))
	if err := scan.Values(values, rows, err); err != nil {
		return nil, fmt.Errorf("read old values: %w", classify(err))
	}
	return values, nil
}
