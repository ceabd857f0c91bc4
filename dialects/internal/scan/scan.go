// Package scan reads the rows of the log from database/sql, for the dialects that use it.
package scan

import (
	"database/sql"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Rows reads and closes the answer of a query for id, key, create_id, deleted, at, value, as far as
// changelog.PageBytes. err is the query's.
func Rows(rows *sql.Rows, err error) ([]changelog.Row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return NextRows(rows)
}

// NextRows reads the current result set of rows as Rows does.
func NextRows(rows *sql.Rows) (out []changelog.Row, err error) {
	for bytes := 0; bytes < changelog.PageBytes && rows.Next(); {
		var r changelog.Row
		if err := rows.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Value); err != nil {
			return nil, err
		}
		out = append(out, r)
		bytes += len(r.Value)
	}
	return out, rows.Err()
}

// Marks reads and closes the answer of a query for names and values of marks.
func Marks(rows *sql.Rows, err error) (map[string]string, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	marks := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		marks[name] = value
	}
	return marks, rows.Err()
}

// Steps is Rows for a query that has id, create_id, at and value of the row before as
// well, NULLs if the key was absent.
func Steps(rows *sql.Rows, err error) ([]changelog.Step, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var steps []changelog.Step
	for rows.Next() {
		var s changelog.Step
		var id, created, at sql.NullInt64
		var value []byte
		err := rows.Scan(&s.Revision, &s.Key, &s.CreateRevision, &s.Deleted, &s.At, &s.Value, &id, &created, &at, &value)
		if err != nil {
			return nil, err
		}
		if id.Valid {
			s.Prev = &changelog.Row{Revision: id.Int64, Key: s.Key, CreateRevision: created.Int64, At: at.Int64, Value: value}
		}
		steps = append(steps, s)
	}
	return steps, rows.Err()
}
