package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// pages reads a log page by page for those who search it for damage: it goes on behind what cannot be read, and
// takes no value for one of another type. Each page is a query of its own, and copied.
type pages struct {
	from interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	through int64                       // the last revision
	check   func(context.Context) error // whether rows were missing when a page was read; nil: they cannot
}

// Page calls f with the next rows.
func (p *pages) Page(ctx context.Context, after int64, limit int, f func(*changelog.Row) error) error {
	var r changelog.Row
	into := []any{strictInt{&r.Revision}, strictText{&r.Key}, strictInt{&r.CreateRevision}, strictBool{&r.Deleted}, strictInt{&r.At},
		strictBytes{&r.Value}, strictIntOrNull{&r.Author}, strictBytes{&r.AuditID}}
	rows, err := p.from.QueryContext(context.WithoutCancel(ctx), `
		SELECT id, key, create_id, deleted, at, value, author, audit_id
		FROM log NOT INDEXED
		WHERE id > ? AND id <= ?
		ORDER BY id
		LIMIT ?`, after, p.through, limit)
	return eachCopy(ctx, p, rows, err, into, func() (changelog.Row, int) { return copyOf(&r), len(r.Value) }, f)
}

// OldPage calls f with the next rows of table past.
func (p *pages) OldPage(ctx context.Context, after int64, limit int, f func(*changelog.OldRow) error) error {
	var r changelog.OldRow
	into := []any{strictInt{&r.Revision}, strictText{&r.Key}, strictInt{&r.CreateRevision}, strictBool{&r.Deleted}, strictInt{&r.At},
		strictBytes{&r.Value}, strictIntOrNull{&r.Author}, strictBytes{&r.AuditID}, strictInt{&r.UntilID}, strictInt{&r.UntilAt}, strictInt{&r.Expires}}
	rows, err := p.from.QueryContext(context.WithoutCancel(ctx), `
		SELECT id, key, create_id, deleted, at, value, author, audit_id, until_id, until_at, expires
		FROM past NOT INDEXED
		WHERE id > ?
		ORDER BY id
		LIMIT ?`, after, limit)
	return eachCopy(ctx, p, rows, err, into, func() (changelog.OldRow, int) {
		row := r
		row.Row = copyOf(&r.Row)
		return row, len(r.Value)
	}, f)
}

// Links calls f with the next rows in order of keys.
func (p *pages) Links(ctx context.Context, after changelog.Link, indexed bool, limit int, f func(*changelog.Row) error) error {
	var r changelog.Row
	into := []any{strictInt{&r.Revision}, strictText{&r.Key}, strictInt{&r.CreateRevision}, strictBool{&r.Deleted}, strictInt{&r.At}, strictIntOrNull{&r.Author}}
	rows, err := p.links(context.WithoutCancel(ctx), after, indexed, limit)
	return eachCopy(ctx, p, rows, err, into, func() (changelog.Row, int) { return r, 0 }, f)
}

func (p *pages) links(ctx context.Context, after changelog.Link, indexed bool, limit int) (*sql.Rows, error) {
	if indexed {
		return p.from.QueryContext(ctx, `
			SELECT id, key, create_id, deleted, at, author
			FROM log INDEXED BY log_key_id
			WHERE (key, id) > (?, ?) AND id <= ?
			ORDER BY key, id
			LIMIT ?`, after.Key, after.Revision, p.through, limit)
	}
	return p.from.QueryContext(ctx, `
		SELECT id, key, create_id, deleted, at, author
		FROM log NOT INDEXED
		WHERE (key, id) > (?, ?) AND id <= ?
		ORDER BY key, id
		LIMIT ?`, after.Key, after.Revision, p.through, limit)
}

// NextLink reads the index of keys alone.
func (p *pages) NextLink(ctx context.Context, after changelog.Link) (next changelog.Link, ok bool, err error) {
	rows, err := p.from.QueryContext(context.WithoutCancel(ctx), `
		SELECT id, key
		FROM log INDEXED BY log_key_id
		WHERE (key, id) > (?, ?) AND id <= ?
		ORDER BY key, id
		LIMIT 1`, after.Key, after.Revision, p.through)
	err = eachCopy(ctx, p, rows, err, []any{strictInt{&next.Revision}, strictText{&next.Key}}, func() (changelog.Link, int) { return next, 0 }, func(*changelog.Link) error {
		ok = true
		return nil
	})
	return next, ok, err
}

func copyOf(r *changelog.Row) changelog.Row {
	row := *r
	row.Value, row.AuditID = bytes.Clone(r.Value), bytes.Clone(r.AuditID)
	return row
}

// eachCopy reads rows to their end, or until they have many bytes, and only then calls f with them: also with those
// before one that cannot be read.
func eachCopy[R any](ctx context.Context, p *pages, rows *sql.Rows, err error, into []any, read func() (R, int), f func(*R) error) error {
	if err != nil {
		return fmt.Errorf("read rows: %w", damage(err))
	}
	var page []R
	for size := 0; size < heldBytes && err == nil && rows.Next(); {
		if err = ctx.Err(); err == nil {
			err = rows.Scan(into...)
		}
		if err == nil {
			row, bytes := read()
			page = append(page, row)
			size += bytes
		}
	}
	err = errors.Join(err, rows.Err(), rows.Close())
	if p.check != nil {
		if missing := damage(p.check(ctx)); passes(missing) {
			return missing
		}
	}
	for i := range page {
		if err := f(&page[i]); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("read rows: %w", damage(err))
	}
	return nil
}
