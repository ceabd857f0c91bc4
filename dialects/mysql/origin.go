package mysql

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Origins returns where rows come from.
func (l reader) Origins(ctx context.Context, ids []int64) (map[int64]changelog.Origin, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	origins, err := scan.Origins(l.db.QueryContext(ctx, `
		SELECT STRAIGHT_JOIN l.id, l.audit_id, a.who, a.impersonator, a.verb, a.subresource, a.manager
		FROM log AS l FORCE INDEX (PRIMARY)
		LEFT JOIN author AS a ON a.id = l.author
		WHERE l.id IN `+places(len(ids))+` AND (l.author IS NOT NULL OR l.audit_id IS NOT NULL)`, idArgs(ids)...))
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", l.classify(err))
	}
	return origins, nil
}
