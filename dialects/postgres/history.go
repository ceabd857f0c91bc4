package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// History returns changes with their authors.
func (l historian) History(ctx context.Context, q changelog.HistoryQuery) ([]changelog.HistoryRow, error) {
	text, args := historySQL(q)
	rows, err := l.pool.Query(ctx, text, args...)
	if err == nil {
		var out []changelog.HistoryRow
		if out, err = pgx.CollectRows(rows, scanHistory); err == nil {
			return out, nil
		}
	}
	return nil, fmt.Errorf("read history: %w", l.classify(err))
}

// historySQL walks the revisions of both tables, or sorts those of a range of keys, which are in an
// index of each. MATERIALIZED keeps the planner from walking all revisions for the few of one key; what
// else there is of a change is fetched last.
func historySQL(q changelog.HistoryQuery) (text string, args []any) {
	args = []any{q.Sizes, q.After, q.Through, q.Limit}
	order := `DESC`
	if q.Oldest {
		order = `ASC`
	}
	log := `SELECT id FROM log WHERE id > $2 AND id <= $3`
	past := `SELECT id FROM past WHERE id > $2 AND id <= $3`
	if q.From != "" || q.To != "" {
		args = append(args, bound(q.From), bound(q.To))
		log = `WITH k AS MATERIALIZED (SELECT id FROM log WHERE key >= $5 AND key < $6 AND id > $2 AND id <= $3)
			SELECT id FROM k`
		past = `WITH k AS MATERIALIZED (SELECT id FROM past WHERE key >= $5 AND key < $6 AND id > $2 AND id <= $3)
			SELECT id FROM k`
	}
	some := ` ORDER BY id ` + order + ` LIMIT $4`
	return `
		SELECT n.id, coalesce(l.key, p.key), coalesce(l.create_id, p.create_id), coalesce(l.deleted, p.deleted),
		       coalesce(l.at, p.at), CASE WHEN $1 THEN coalesce(octet_length(l.value), octet_length(p.value), 0) ELSE 0 END, coalesce(l.audit_id, p.audit_id),
		       coalesce(a.who, ''), coalesce(a.impersonator, ''), coalesce(a.verb, ''),
		       coalesce(a.subresource, ''), coalesce(a.manager, '')
		FROM (SELECT id FROM ((` + log + some + `) UNION ALL (` + past + some + `)) AS both_tables` + some + `) AS n
		LEFT JOIN log AS l ON l.id = n.id
		LEFT JOIN past AS p ON p.id = n.id
		LEFT JOIN author AS a ON a.id = coalesce(l.author, p.author)
		ORDER BY n.id ` + order, args
}

func scanHistory(row pgx.CollectableRow) (r changelog.HistoryRow, err error) {
	a := &r.Origin.Author
	err = row.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Size, &r.AuditID,
		&a.User, &a.Impersonator, &a.Verb, &a.Subresource, &a.Manager)
	r.Origin.AuditID = changelog.AuditText(r.AuditID)
	return r, err
}

// OldValues returns the values of rows by id.
func (l historian) OldValues(ctx context.Context, ids []int64) (map[int64][]byte, error) {
	values := make(map[int64][]byte, len(ids))
	rows, err := l.pool.Query(ctx, `
		SELECT id, value FROM log WHERE id = ANY ($1::bigint[])
		UNION ALL
		SELECT id, value FROM past WHERE id = ANY ($1::bigint[])`, ids)
	if err == nil {
		var id int64
		var value []byte
		_, err = pgx.ForEachRow(rows, []any{&id, &value}, func() error {
			values[id], value = value, nil
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read old values: %w", l.classify(err))
	}
	return values, nil
}
