package scan

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// EachAuthor reads the result of a query for id, who, impersonator, verb, subresource and manager.
func EachAuthor(f func(int64, changelog.Author) error) func(*sql.Rows, error) error {
	return func(rows *sql.Rows, err error) error {
		if err != nil {
			return fmt.Errorf("read authors: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			var a changelog.Author
			if err := rows.Scan(&id, &a.User, &a.Impersonator, &a.Verb, &a.Subresource, &a.Manager); err != nil {
				return fmt.Errorf("read authors: %w", err)
			}
			if err := f(id, a); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

// EachRow reads the result of a query for id, key, create_id, deleted, at, value, author and audit_id,
// until f fails or ctx ends.
func EachRow(ctx context.Context, f func(*changelog.Row) error) func(*sql.Rows, error) error {
	var r changelog.Row
	var author sql.NullInt64
	var value, audit sql.RawBytes
	into := []any{&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &value, &author, &audit}
	return each(ctx, into, func() error {
		r.Value, r.Author, r.AuditID = value, author.Int64, audit
		return f(&r)
	})
}

// EachOld is EachRow for a query that also has until_id, until_at and expires, at its end.
func EachOld(ctx context.Context, f func(*changelog.OldRow) error) func(*sql.Rows, error) error {
	var r changelog.OldRow
	var author sql.NullInt64
	var value, audit sql.RawBytes
	into := []any{&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &value, &author, &audit, &r.UntilID, &r.UntilAt, &r.Expires}
	return each(ctx, into, func() error {
		r.Value, r.Author, r.AuditID = value, author.Int64, audit
		return f(&r)
	})
}

// Kept reads the table of that name.
func Kept(rows *sql.Rows, err error) (map[string]int64, error) {
	if err != nil {
		return nil, fmt.Errorf("read what is kept: %w", err)
	}
	defer rows.Close()
	kept := map[string]int64{}
	for rows.Next() {
		var prefix string
		var lost int64
		if err := rows.Scan(&prefix, &lost); err != nil {
			return nil, fmt.Errorf("read what is kept: %w", err)
		}
		kept[prefix] = lost
	}
	return kept, rows.Err()
}

// EachKey is EachRow for a query for id and key alone.
func EachKey(ctx context.Context, f func(*changelog.Row) error) func(*sql.Rows, error) error {
	var r changelog.Row
	return each(ctx, []any{&r.Revision, &r.Key}, func() error { return f(&r) })
}

// EachLink is EachRow for a query without value and audit_id.
func EachLink(ctx context.Context, f func(*changelog.Row) error) func(*sql.Rows, error) error {
	var r changelog.Row
	var author sql.NullInt64
	into := []any{&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &author}
	return each(ctx, into, func() error {
		r.Author = author.Int64
		return f(&r)
	})
}

func each(ctx context.Context, into []any, f func() error) func(*sql.Rows, error) error {
	return func(rows *sql.Rows, err error) error {
		if err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := rows.Scan(into...); err != nil {
				return fmt.Errorf("read rows: %w", err)
			}
			if err := f(); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}
