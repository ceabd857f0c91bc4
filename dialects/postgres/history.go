package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/sqlstore"
)

// History returns changes with their authors.
func (l *Log) History(ctx context.Context, q sqlstore.HistoryQuery) ([]sqlstore.HistoryRow, error) {
	text, args := historySQL(q)
	rows, err := l.pool.Query(ctx, text, args...)
	if err == nil {
		var out []sqlstore.HistoryRow
		if out, err = pgx.CollectRows(rows, scanHistory); err == nil {
			return out, nil
		}
	}
	return nil, fmt.Errorf("read history: %w", l.classify(err))
}

// historySQL walks the revisions, or sorts those of a range of keys, which are in an index. MATERIALIZED
// keeps the planner from walking all revisions for the few of one key; values are fetched last.
func historySQL(q sqlstore.HistoryQuery) (text string, args []any) {
	args = []any{q.Values, q.After, q.Through, q.Limit}
	order := `DESC`
	if q.Oldest {
		order = `ASC`
	}
	numbers := `SELECT id FROM log WHERE id > $2 AND id <= $3`
	if q.From != "" || q.To != "" {
		args = append(args, bound(q.From), bound(q.To))
		numbers = `WITH k AS MATERIALIZED (SELECT id FROM log WHERE key >= $5 AND key < $6 AND id > $2 AND id <= $3)
			SELECT id FROM k`
	}
	return `
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, CASE WHEN $1 THEN l.value END, l.audit_id,
		       coalesce(a.who, ''), coalesce(a.impersonator, ''), coalesce(a.verb, ''),
		       coalesce(a.subresource, ''), coalesce(a.manager, '')
		FROM (` + numbers + ` ORDER BY id ` + order + ` LIMIT $4) AS n
		JOIN log AS l ON l.id = n.id
		LEFT JOIN author AS a ON a.id = l.author
		ORDER BY l.id ` + order, args
}

func scanHistory(row pgx.CollectableRow) (r sqlstore.HistoryRow, err error) {
	a := &r.Origin.Author
	err = row.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Value, &r.AuditID,
		&a.User, &a.Impersonator, &a.Verb, &a.Subresource, &a.Manager)
	r.Origin.AuditID = sqlstore.AuditText(r.AuditID)
	return r, err
}
