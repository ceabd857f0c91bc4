package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Origins returns where rows come from.
func (l reader) Origins(ctx context.Context, ids []int64) (map[int64]changelog.Origin, error) {
	rows, err := l.pool.Query(ctx, `
		SELECT l.id, l.audit_id, coalesce(a.who, ''), coalesce(a.impersonator, ''), coalesce(a.verb, ''),
		       coalesce(a.subresource, ''), coalesce(a.manager, '')
		FROM log AS l
		LEFT JOIN author AS a ON a.id = l.author
		WHERE l.id = ANY ($1::bigint[]) AND (l.author IS NOT NULL OR l.audit_id IS NOT NULL)`, ids)
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", l.classify(err))
	}
	origins := make(map[int64]changelog.Origin)
	var id int64
	var audit []byte
	var o changelog.Origin
	into := []any{&id, &audit, &o.User, &o.Impersonator, &o.Verb, &o.Subresource, &o.Manager}
	_, err = pgx.ForEachRow(rows, into, func() error {
		o.AuditID = changelog.AuditText(audit)
		origins[id] = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", l.classify(err))
	}
	return origins, nil
}
