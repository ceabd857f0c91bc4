package scan

import (
	"database/sql"
	"math"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// RawRows is Rows for a query that has version and lease as well.
func RawRows(rows *sql.Rows, err error) ([]changelog.Row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return NextRawRows(rows)
}

// NextRawRows reads the current result set of rows as RawRows does.
func NextRawRows(rows *sql.Rows) ([]changelog.Row, error) { return nextRaw(rows, math.MaxInt) }

func nextRaw(rows *sql.Rows, most int) (out []changelog.Row, err error) {
	for bytes := 0; bytes < most && rows.Next(); {
		var r changelog.Row
		if err := rows.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Value, &r.Version, &r.Lease); err != nil {
			return nil, err
		}
		out = append(out, r)
		bytes += len(r.Value)
	}
	return out, rows.Err()
}

// RawPage is RawRows as far as changelog.PageBytes.
func RawPage(rows *sql.Rows, err error) ([]changelog.Row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return NextRawPage(rows)
}

// NextRawPage is NextRawRows as far as changelog.PageBytes.
func NextRawPage(rows *sql.Rows) ([]changelog.Row, error) { return nextRaw(rows, changelog.PageBytes) }

// RawKeys is RawRows for a query without value.
func RawKeys(rows *sql.Rows, err error) ([]changelog.Row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []changelog.Row
	for rows.Next() {
		var r changelog.Row
		if err := rows.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Version, &r.Lease); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// RawSteps is Steps for a query that has version and lease of both rows as well, after the values.
func RawSteps(rows *sql.Rows, err error) ([]changelog.Step, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var steps []changelog.Step
	for rows.Next() {
		var s changelog.Step
		var id, created, at, version, lease sql.NullInt64
		var value []byte
		err := rows.Scan(&s.Revision, &s.Key, &s.CreateRevision, &s.Deleted, &s.At, &s.Value, &s.Version, &s.Lease,
			&id, &created, &at, &value, &version, &lease)
		if err != nil {
			return nil, err
		}
		if id.Valid {
			s.Prev = &changelog.Row{
				Revision: id.Int64, Key: s.Key, CreateRevision: created.Int64, At: at.Int64, Value: value,
				Version: version.Int64, Lease: lease.Int64,
			}
		}
		steps = append(steps, s)
	}
	return steps, rows.Err()
}

// Values reads and closes the answer of a query for id and value into values.
func Values(values map[int64][]byte, rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	return NextValues(values, rows)
}

// NextValues reads the current result set of rows as Values does.
func NextValues(values map[int64][]byte, rows *sql.Rows) error {
	for rows.Next() {
		var id int64
		var value []byte
		if err := rows.Scan(&id, &value); err != nil {
			return err
		}
		values[id] = value
	}
	return rows.Err()
}

// Leases reads and closes the answer of a query for id, ttl and expires.
func Leases(rows *sql.Rows, err error) ([]changelog.Lease, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return NextLeases(rows)
}

// NextLeases reads the current result set of rows as Leases does.
func NextLeases(rows *sql.Rows) (leases []changelog.Lease, err error) {
	for rows.Next() {
		var l changelog.Lease
		if err := rows.Scan(&l.ID, &l.TTL, &l.Expires); err != nil {
			return nil, err
		}
		leases = append(leases, l)
	}
	return leases, rows.Err()
}
