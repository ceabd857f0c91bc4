package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// part runs a query in a part of the transaction, so that the transaction can go on if the query fails. Its errors
// are judged by damage.
func (z *frozen) part(ctx context.Context, read func(pgx.Tx) error) error {
	tx, err := z.tx.Begin(ctx)
	if err != nil {
		return z.l.damage(err)
	}
	if err := read(tx); err != nil {
		if back := tx.Rollback(ctx); back != nil && !errors.Is(back, pgx.ErrTxClosed) {
			err = errors.Join(err, back)
		}
		return z.l.damage(err)
	}
	return z.l.damage(tx.Commit(ctx))
}

// damage judges an error of those who search for damage: what cannot be read of a database that is there wraps
// changelog.ErrDamaged, or nothing; what passes wraps changelog.ErrUnavailable.
func (l *database) damage(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) || errors.Is(err, changelog.ErrDamaged) || errors.Is(err, changelog.ErrUnavailable) {
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w: %w", changelog.ErrDamaged, err)
		}
		return l.classify(err)
	}
	switch {
	case e.Code == undefinedTable, e.Code == "58030": // an I/O error
		return fmt.Errorf("%w: %w", changelog.ErrDamaged, err)
	case strings.HasPrefix(e.Code, "57"), e.Code == "42501", strings.HasPrefix(e.Code, "40"), e.Code == "72000": // stopped, not allowed, conflicts
		return fmt.Errorf("%w: %w", changelog.ErrUnavailable, err)
	}
	return l.classify(err)
}

// Page calls f with the next rows.
func (z *frozen) Page(ctx context.Context, after int64, limit int, f func(*changelog.Row) error) error {
	return z.part(ctx, func(tx pgx.Tx) error {
		return eachRow(f)(tx.Query(ctx, `
			SELECT id, key, create_id, deleted, at, value, coalesce(author, 0), audit_id
			FROM log
			WHERE id > $1
			ORDER BY id
			LIMIT $2`, after, limit))
	})
}

// OldPage calls f with the next rows of table past.
func (z *frozen) OldPage(ctx context.Context, after int64, limit int, f func(*changelog.OldRow) error) error {
	return z.part(ctx, func(tx pgx.Tx) error {
		return eachOld(f)(tx.Query(ctx, `
			SELECT id, key, create_id, deleted, at, value, coalesce(author, 0), audit_id, until_id, until_at, expires
			FROM past
			WHERE id > $1
			ORDER BY id
			LIMIT $2`, after, limit))
	})
}

// eachOld reads the result of a query for what eachRow does, until_id, until_at and expires.
func eachOld(f func(*changelog.OldRow) error) func(pgx.Rows, error) error {
	return func(rows pgx.Rows, err error) error {
		if err != nil {
			return fmt.Errorf("read old versions: %w", err)
		}
		var r changelog.OldRow
		var value, audit pgtype.DriverBytes
		into := []any{&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &value, &r.Author, &audit, &r.UntilID, &r.UntilAt, &r.Expires}
		_, err = pgx.ForEachRow(rows, into, func() error {
			r.Value, r.AuditID = value, audit
			return f(&r)
		})
		return err
	}
}

// Links calls f with the next rows in order of keys.
func (z *frozen) Links(ctx context.Context, after changelog.Link, indexed bool, limit int, f func(*changelog.Row) error) error {
	return z.part(ctx, func(tx pgx.Tx) error {
		if !indexed {
			if _, err := tx.Exec(ctx, `SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = on`); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, `
			SELECT id, key, create_id, deleted, at, coalesce(author, 0)
			FROM log
			WHERE (key, id) > ($1, $2)
			ORDER BY key, id
			LIMIT $3`, after.Key, after.Revision, limit)
		if err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		var r changelog.Row
		_, err = pgx.ForEachRow(rows, []any{&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Author}, func() error { return f(&r) })
		if err == nil && !indexed { // an error takes it back, too
			_, err = tx.Exec(ctx, `SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_sort = off`)
		}
		return err
	})
}

// NextLink reads the index of keys, and of the table only what the server does not know to be visible.
func (z *frozen) NextLink(ctx context.Context, after changelog.Link) (next changelog.Link, ok bool, err error) {
	err = z.part(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			SELECT id, key
			FROM log
			WHERE (key, id) > ($1, $2)
			ORDER BY key, id
			LIMIT 1`, after.Key, after.Revision).Scan(&next.Revision, &next.Key)
		if ok = err == nil; errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return next, ok, err
}

// amcheckFor is what is examined with amcheck.
var amcheckFor = []string{"log", "meta", "lease", "author", "past", "kept", "schema_migrations"}

// examinePages has amcheck look at indexes and tables, if it is installed and this user may call it.
func (l source) examinePages(ctx context.Context, tx pgx.Tx, found func(in, what string)) error {
	var schema string
	var indexes, heaps bool
	err := tx.QueryRow(ctx, `
		SELECT n.nspname,
		       coalesce((SELECT has_function_privilege(p.oid, 'EXECUTE') FROM pg_proc p
		                 WHERE p.pronamespace = n.oid AND p.proname = 'bt_index_check' AND p.pronargs = 2), false),
		       coalesce((SELECT has_function_privilege(p.oid, 'EXECUTE') FROM pg_proc p
		                 WHERE p.pronamespace = n.oid AND p.proname = 'verify_heapam'), false)
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'amcheck'`).Scan(&schema, &indexes, &heaps)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = tx.Exec(ctx, `SELECT set_config('search_path', current_setting('search_path') || ', ' || quote_ident($1), true)`, schema)
	}
	if err != nil {
		return err
	}
	if heaps {
		if err := l.examineHeaps(ctx, tx, found); err != nil {
			return err
		}
	}
	if !indexes {
		return nil
	}
	names, err := queryTexts(ctx, tx, `
		SELECT i.indexrelid::regclass::text
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
		WHERE i.indrelid = ANY (SELECT to_regclass(t) FROM unnest($1::text[]) t) AND a.amname = 'btree' AND i.indisvalid
		ORDER BY 1`, amcheckFor)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := l.examinePart(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT bt_index_check($1::text::regclass, true)`, name)
			return err
		})
		if passes(err) {
			return err
		}
		if err != nil {
			found("index "+name, "amcheck: "+oneLine(err))
		}
	}
	return nil
}

// examineHeaps has amcheck look at tables and at what is stored beside them.
func (l source) examineHeaps(ctx context.Context, tx pgx.Tx, found func(in, what string)) error {
	names, err := queryTexts(ctx, tx, `SELECT to_regclass(t)::text FROM unnest($1::text[]) t WHERE to_regclass(t) IS NOT NULL`, amcheckFor)
	if err != nil {
		return err
	}
	for _, name := range names {
		var said []string
		err := l.examinePart(ctx, tx, func(tx pgx.Tx) (err error) {
			said, err = queryTexts(ctx, tx, `SELECT format('block %s, row %s: %s', blkno, offnum, msg) FROM verify_heapam($1::text::regclass, check_toast => true) LIMIT 1000`, name)
			return err
		})
		if passes(err) {
			return err
		}
		if err != nil {
			said = append(said, oneLine(err))
		}
		for _, s := range said {
			found("table "+name, "amcheck: "+s)
		}
	}
	return nil
}

// examineLarge looks whether the files are there of what is stored beside tables. No row leads to one that is empty, and
// the next large value could not be written. Few may look: an admin, or who may read all data.
func (l source) examineLarge(ctx context.Context, tx pgx.Tx, found func(in, what string)) error {
	names, err := queryTexts(ctx, tx, `
		SELECT c.reltoastrelid::regclass::text
		FROM pg_class c
		WHERE c.oid = ANY (SELECT to_regclass(t) FROM unnest($1::text[]) t) AND c.reltoastrelid <> 0
		      AND has_schema_privilege('pg_toast', 'USAGE') AND has_table_privilege(c.reltoastrelid, 'SELECT')`, amcheckFor)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := l.examinePart(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT 1 FROM `+name+` LIMIT 1`)
			return err
		})
		if passes(err) {
			return err
		}
		if err != nil {
			found("table "+name, oneLine(err))
		}
	}
	return nil
}

// examinePart is frozen.part of a transaction that only examines.
func (l source) examinePart(ctx context.Context, tx pgx.Tx, look func(pgx.Tx) error) error {
	return (&frozen{l.database, tx}).part(ctx, look)
}

// passes says that err, which damage has judged, is no damage.
func passes(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, changelog.ErrClosed) ||
		errors.Is(err, changelog.ErrUnavailable) && !errors.Is(err, changelog.ErrDamaged)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func queryTexts(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return slices.Clip(all), err
}
