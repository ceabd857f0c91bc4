package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// frozen is a transaction that sees one snapshot. What it sees is not vacuumed until it ends.
type frozen struct {
	l  *database
	tx pgx.Tx
}

// Freeze calls f with the log as it is now, on a connection that the pool does not miss. Rows are sent
// as they are found: the planner, which would rather sort the whole table, is told to walk through the
// index that has them in order.
func (l source) Freeze(ctx context.Context, f func(changelog.Frozen) error) error {
	o := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	conn, err := l.connect(ctx, l.pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("read the log: %w", l.classify(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var broken error // of the function, which is not the database's
	err = pgx.BeginTxFunc(ctx, conn, o, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
			SET LOCAL enable_hashagg = off; SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0`)
		if err == nil {
			broken = f(&frozen{l.database, tx})
			err = broken
		}
		return err
	})
	if err != nil && broken == nil {
		err = fmt.Errorf("read the log: %w", err)
	}
	return l.classify(err)
}

// Head is the end of the log.
func (z *frozen) Head(ctx context.Context) (h changelog.Head, err error) {
	err = z.part(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			SELECT (SELECT value::bigint FROM meta WHERE name = 'floor'),
			       coalesce((SELECT max(id) FROM log), 0)`).Scan(&h.Floor, &h.Revision)
	})
	if err != nil {
		return h, fmt.Errorf("read head: %w", err)
	}
	h.Revision = max(h.Revision, h.Floor)
	return h, nil
}

// Meta returns the table of that name.
func (z *frozen) Meta(ctx context.Context) (map[string]string, error) {
	meta := map[string]string{}
	err := z.part(ctx, func(tx pgx.Tx) error {
		var name, value string
		return eachOf([]any{&name, &value}, func() error {
			meta[name] = value
			return nil
		})(tx.Query(ctx, `SELECT name, value FROM meta`))
	})
	if err != nil {
		return nil, fmt.Errorf("read meta: %w", err)
	}
	return meta, nil
}

// eachOf calls f with each row of a query's result.
func eachOf(into []any, f func() error) func(pgx.Rows, error) error {
	return func(rows pgx.Rows, err error) error {
		if err == nil {
			_, err = pgx.ForEachRow(rows, into, f)
		}
		return err
	}
}

// Writers calls f with all authors.
func (z *frozen) Writers(ctx context.Context, f func(number int64, a changelog.Author) error) error {
	var id int64
	var a changelog.Author
	err := z.part(ctx, func(tx pgx.Tx) error {
		return eachOf([]any{&id, &a.User, &a.Impersonator, &a.Verb, &a.Subresource, &a.Manager}, func() error { return f(id, a) })(tx.Query(ctx, `
			SELECT id, who, impersonator, verb, subresource, manager FROM author ORDER BY id`))
	})
	if err != nil {
		return fmt.Errorf("read authors: %w", err)
	}
	return nil
}

// All calls f with rows in order of their ids.
func (z *frozen) All(ctx context.Context, inForce bool, f func(*changelog.Row) error) error {
	return z.part(ctx, func(tx pgx.Tx) error {
		if inForce {
			return eachRow(f)(tx.Query(ctx, `
				SELECT id, key, create_id, deleted, at, value, coalesce(author, 0), audit_id
				FROM log AS l
				WHERE NOT deleted
				  AND id = (SELECT n.id FROM log AS n WHERE n.key = l.key ORDER BY n.id DESC LIMIT 1)
				ORDER BY id`))
		}
		return eachRow(f)(tx.Query(ctx, `
			SELECT id, key, create_id, deleted, at, value, coalesce(author, 0), audit_id
			FROM log
			ORDER BY id`))
	})
}

// eachRow reads the result of a query for id, key, create_id, deleted, at, value, author and audit_id.
func eachRow(f func(*changelog.Row) error) func(pgx.Rows, error) error {
	return func(rows pgx.Rows, err error) error {
		if err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		var r changelog.Row
		var value, audit pgtype.DriverBytes
		into := []any{&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &value, &r.Author, &audit}
		_, err = pgx.ForEachRow(rows, into, func() error {
			r.Value, r.AuditID = value, audit
			return f(&r)
		})
		return err
	}
}

// Kept returns the table of that name.
func (z *frozen) Kept(ctx context.Context) (map[string]int64, error) {
	kept := map[string]int64{}
	err := z.part(ctx, func(tx pgx.Tx) error {
		var prefix string
		var lost int64
		return eachOf([]any{&prefix, &lost}, func() error {
			kept[prefix] = lost
			return nil
		})(tx.Query(ctx, `SELECT prefix, lost FROM kept`))
	})
	if err != nil {
		return nil, fmt.Errorf("read what is kept: %w", err)
	}
	return kept, nil
}

// Old calls f with the rows of table past.
func (z *frozen) Old(ctx context.Context, f func(*changelog.OldRow) error) error {
	return z.part(ctx, func(tx pgx.Tx) error {
		return eachOld(f)(tx.Query(ctx, `
			SELECT id, key, create_id, deleted, at, value, coalesce(author, 0), audit_id, until_id, until_at, expires
			FROM past
			ORDER BY id`))
	})
}

// Broken calls f with rows of table past without a successor.
func (z *frozen) Broken(ctx context.Context, f func(*changelog.Row) error) error {
	var r changelog.Row
	err := z.part(ctx, func(tx pgx.Tx) error {
		return eachOf([]any{&r.Revision, &r.Key}, func() error { return f(&r) })(tx.Query(ctx, `
			SELECT p.id, p.key
			FROM past AS p
			WHERE NOT p.deleted
			  AND NOT EXISTS (SELECT FROM log AS n WHERE n.id = p.until_id AND n.key = p.key)
			  AND NOT EXISTS (SELECT FROM past AS n WHERE n.id = p.until_id AND n.key = p.key)
			ORDER BY p.id`))
	})
	if err != nil {
		return fmt.Errorf("read old versions: %w", err)
	}
	return nil
}

// Told counts what the view history has.
func (z *frozen) Told(ctx context.Context) (changes, revisions int64, err error) {
	err = z.part(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(revision), 0)::bigint FROM history`).Scan(&changes, &revisions)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("read the view history: %w", err)
	}
	return changes, revisions, nil
}

// Shown counts what the view shows.
func (z *frozen) Shown(ctx context.Context) (objects, versions int64, err error) {
	err = z.part(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(resource_version), 0)::bigint FROM objects`).Scan(&objects, &versions)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("read the view objects: %w", err)
	}
	return objects, versions, nil
}
