package scan

import (
	"database/sql"

	"github.com/plinth-io/plinth/sqlstore"
)

// Origins reads and closes the answer of a query for id, audit_id, who, impersonator, verb, subresource
// and manager, all but the first of which may be NULL.
func Origins(rows *sql.Rows, err error) (map[int64]sqlstore.Origin, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	origins := make(map[int64]sqlstore.Origin)
	for rows.Next() {
		var id int64
		var audit []byte
		var who, impersonator, verb, subresource, manager sql.NullString
		if err := rows.Scan(&id, &audit, &who, &impersonator, &verb, &subresource, &manager); err != nil {
			return nil, err
		}
		origins[id] = sqlstore.Origin{
			AuditID: sqlstore.AuditText(audit),
			Author: sqlstore.Author{
				User: who.String, Impersonator: impersonator.String,
				Verb: verb.String, Subresource: subresource.String, Manager: manager.String,
			},
		}
	}
	return origins, rows.Err()
}
