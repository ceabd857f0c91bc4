package mysql

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore"
)

// History returns changes with their authors.
func (l *Log) History(ctx context.Context, q sqlstore.HistoryQuery) ([]sqlstore.HistoryRow, error) {
	text, args := historySQL(q)
	rows, err := scan.History(l.db.QueryContext(ctx, text, args...))
	if err != nil {
		return nil, fmt.Errorf("read history: %w", l.classify(err))
	}
	return rows, nil
}

// historySQL walks the revisions, or sorts those of a range of keys, which are in an index. Values are
// fetched last.
func historySQL(q sqlstore.HistoryQuery) (text string, args []any) {
	from, order := "log AS k FORCE INDEX (PRIMARY) WHERE", "DESC"
	args = append(args, q.Values)
	if q.From != "" || q.To != "" {
		from = "log AS k FORCE INDEX (log_key_id) WHERE k.`key` >= ? AND k.`key` < ? AND"
		args = append(args, []byte(q.From), []byte(q.To))
	}
	if q.Oldest {
		order = "ASC"
	}
	return `
		SELECT STRAIGHT_JOIN l.id, l.` + "`key`, l.create_id, l.deleted, l.`at`" + `, IF(?, l.value, NULL), l.audit_id,
		       a.who, a.impersonator, a.verb, a.subresource, a.manager
		FROM (SELECT k.id FROM ` + from + ` k.id > ? AND k.id <= ? ORDER BY k.id ` + order + ` LIMIT ?) AS n
		JOIN log AS l ON l.id = n.id
		LEFT JOIN author AS a ON a.id = l.author
		ORDER BY l.id ` + order, append(args, q.After, q.Through, q.Limit)
}
