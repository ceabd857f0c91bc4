package mysql

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// History returns changes with their authors.
func (l historian) History(ctx context.Context, q changelog.HistoryQuery) ([]changelog.HistoryRow, error) {
	text, args := historySQL(q)
	rows, err := scan.History(l.db.QueryContext(ctx, text, args...))
	if err != nil {
		return nil, fmt.Errorf("read history: %w", l.classify(err))
	}
	return rows, nil
}

// historySQL walks the revisions of both tables, or sorts those of a range of keys, which are in an
// index of each. What else there is of a change is fetched last.
func historySQL(q changelog.HistoryQuery) (text string, args []any) {
	log, past, order := "log AS k FORCE INDEX (PRIMARY) WHERE", "past AS k FORCE INDEX (PRIMARY) WHERE", "DESC"
	var some []any
	if q.From != "" || q.To != "" {
		log = "log AS k FORCE INDEX (log_key_id) WHERE k.`key` >= ? AND k.`key` < ? AND"
		past = "past AS k FORCE INDEX (past_key_id) WHERE k.`key` >= ? AND k.`key` < ? AND"
		some = append(some, []byte(q.From), []byte(q.To))
	}
	some = append(some, q.After, q.Through, q.Limit)
	if q.Oldest {
		order = "ASC"
	}
	args = append(append(append(append(args, q.Sizes), some...), some...), q.Limit)
	return `
		SELECT STRAIGHT_JOIN n.id, COALESCE(l.` + "`key`, p.`key`" + `), COALESCE(l.create_id, p.create_id), COALESCE(l.deleted, p.deleted),
		       COALESCE(l.` + "`at`, p.`at`" + `), IF(?, COALESCE(LENGTH(l.value), LENGTH(p.value), 0), 0), COALESCE(l.audit_id, p.audit_id),
		       a.who, a.impersonator, a.verb, a.subresource, a.manager
		FROM ((SELECT k.id AS id FROM ` + log + ` k.id > ? AND k.id <= ? ORDER BY k.id ` + order + ` LIMIT ?)
		      UNION ALL
		      (SELECT k.id AS id FROM ` + past + ` k.id > ? AND k.id <= ? ORDER BY k.id ` + order + ` LIMIT ?)
		      ORDER BY id ` + order + ` LIMIT ?) AS n
		LEFT JOIN log AS l ON l.id = n.id
		LEFT JOIN past AS p ON p.id = n.id
		LEFT JOIN author AS a ON a.id = COALESCE(l.author, p.author)
		ORDER BY n.id ` + order, args
}

// OldValues returns the values of rows by id.
func (l historian) OldValues(ctx context.Context, ids []int64) (map[int64][]byte, error) {
	values, args := make(map[int64][]byte, len(ids)), idArgs(ids)
	rows, err := l.db.QueryContext(ctx, `
		SELECT id, value FROM log WHERE id IN `+places(len(ids))+`
		UNION ALL
		SELECT id, value FROM past WHERE id IN `+places(len(ids)), append(args, args...)...)
	if err := scan.Values(values, rows, err); err != nil {
		return nil, fmt.Errorf("read old values: %w", l.classify(err))
	}
	return values, nil
}
