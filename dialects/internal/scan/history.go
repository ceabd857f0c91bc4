package scan

import (
	"database/sql"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// History reads and closes the answer of a query for id, key, create_id, deleted, at, size, audit_id,
// who, impersonator, verb, subresource and manager, all but the first six of which may be NULL.
func History(rows *sql.Rows, err error) ([]changelog.HistoryRow, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []changelog.HistoryRow
	for rows.Next() {
		var r changelog.HistoryRow
		var who, impersonator, verb, subresource, manager sql.NullString
		err := rows.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Size, &r.AuditID,
			&who, &impersonator, &verb, &subresource, &manager)
		if err != nil {
			return nil, err
		}
		r.Origin = changelog.Origin{
			AuditID: changelog.AuditText(r.AuditID),
			Author: changelog.Author{
				User: who.String, Impersonator: impersonator.String,
				Verb: verb.String, Subresource: subresource.String, Manager: manager.String,
			},
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// PastRows reads and closes the answer of a query for id, key, create_id, deleted, at and size.
func PastRows(rows *sql.Rows, err error) ([]changelog.HistoryRow, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []changelog.HistoryRow
	for rows.Next() {
		var r changelog.HistoryRow
		if err := rows.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Size); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}
