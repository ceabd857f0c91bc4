package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Origins returns where rows come from.
func (l reader) Origins(ctx context.Context, ids []int64) (map[int64]changelog.Origin, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", err)
	}
	origins, err := scan.Origins(l.reads.QueryContext(ctx, `
		SELECT l.id, l.audit_id, a.who, a.impersonator, a.verb, a.subresource, a.manager
		FROM json_each(?) AS n
		CROSS JOIN log AS l ON l.id = n.value
		LEFT JOIN author AS a ON a.id = l.author
		WHERE l.author IS NOT NULL OR l.audit_id IS NOT NULL`, string(list)))
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", classify(err))
	}
	return origins, nil
}
