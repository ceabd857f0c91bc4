package scan

import (
	"database/sql"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

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
