package scan

import (
	"database/sql"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Origins reads and closes the answer of a query for id, audit_id, who, impersonator, verb, subresource
// and manager, all but the first of which may be NULL.
func Origins(rows *sql.Rows, err error) (map[int64]changelog.Origin, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	origins := make(map[int64]changelog.Origin)
	for rows.Next() {
		var id int64
		var audit []byte
		var who, impersonator, verb, subresource, manager sql.NullString
		if err := rows.Scan(&id, &audit, &who, &impersonator, &verb, &subresource, &manager); err != nil {
			return nil, err
		}
		origins[id] = changelog.Origin{
			AuditID: changelog.AuditText(audit),
			Author: changelog.Author{
				User: who.String, Impersonator: impersonator.String,
				Verb: verb.String, Subresource: subresource.String, Manager: manager.String,
			},
		}
	}
	return origins, rows.Err()
}

// Authors reads the result of a query for id, who, impersonator, verb, subresource and manager.
func Authors(rows *sql.Rows, err error) (map[changelog.Author]int64, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	authors := make(map[changelog.Author]int64)
	for rows.Next() {
		var id int64
		var a changelog.Author
		if err := rows.Scan(&id, &a.User, &a.Impersonator, &a.Verb, &a.Subresource, &a.Manager); err != nil {
			return nil, err
		}
		authors[a] = id
	}
	return authors, rows.Err()
}
