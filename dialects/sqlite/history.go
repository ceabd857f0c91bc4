package sqlite

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore"
)

// History returns changes with their authors.
func (l *Log) History(ctx context.Context, q sqlstore.HistoryQuery) ([]sqlstore.HistoryRow, error) {
	rows, err := scan.History(l.reads.QueryContext(ctx, historySQL(q), q.Values, q.After, q.Through, q.Limit, q.From, q.To))
	if err != nil {
		return nil, fmt.Errorf("read history: %w", classify(err))
	}
	return rows, nil
}

// historySQL walks the revisions, or sorts those of a range of keys, which are in an index. Values are
// fetched last.
func historySQL(q sqlstore.HistoryQuery) string {
	from, order := `log AS k NOT INDEXED WHERE`, `DESC`
	if q.From != "" || q.To != "" {
		from = `log AS k INDEXED BY log_key_id WHERE k.key >= ?5 AND k.key < ?6 AND`
	}
	if q.Oldest {
		order = `ASC`
	}
	return `
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, CASE WHEN ?1 THEN l.value END, l.audit_id,
		       a.who, a.impersonator, a.verb, a.subresource, a.manager
		FROM (SELECT k.id FROM ` + from + ` k.id > ?2 AND k.id <= ?3 ORDER BY k.id ` + order + ` LIMIT ?4) AS n
		CROSS JOIN log AS l ON l.id = n.id
		LEFT JOIN author AS a ON a.id = l.author
		ORDER BY l.id ` + order
}
