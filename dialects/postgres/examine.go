package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/internal/shape"
	"github.com/plinth-io/plinth/migrations"
)

// made is what the migrations make.
var made = shape.Parse(`
	table log, permanent
	table meta, permanent
	table lease, permanent
	table author, permanent
	table past, permanent
	table kept, permanent
	column log.id, bigint not null
	column log.key, text not null collate C
	column log.create_id, bigint not null
	column log.deleted, boolean not null
	column log.at, bigint not null
	column log.value, bytea not null
	column log.version, bigint
	column log.lease, bigint
	column log.author, integer
	column log.audit_id, bytea
	column meta.name, text not null collate C
	column meta.value, text not null
	column lease.id, bigint not null
	column lease.ttl, bigint not null
	column lease.expires, bigint not null
	column author.id, integer not null
	column author.who, text not null
	column author.impersonator, text not null
	column author.verb, text not null
	column author.subresource, text not null
	column author.manager, text not null
	column past.id, bigint not null
	column past.key, text not null collate C
	column past.create_id, bigint not null
	column past.deleted, boolean not null
	column past.at, bigint not null
	column past.until_id, bigint not null
	column past.until_at, bigint not null
	column past.expires, bigint not null
	column past.author, integer
	column past.audit_id, bytea
	column past.value, bytea not null
	column kept.prefix, text not null collate C
	column kept.lost, bigint not null
	index log_pkey, unique on log (id)
	index log_key_id, unique on log (key, id)
	index meta_pkey, unique on meta (name)
	index lease_pkey, unique on lease (id)
	index lease_expires, on lease (expires)
	index author_pkey, unique on author (id)
	index past_pkey, unique on past (id)
	index past_key_id, unique on past (key, id)
	index past_expires, on past (expires)
	index kept_pkey, unique on kept (prefix)
	view objects, api_version, kind, namespace, name, resource_version, created_at, updated_at, object, key
	view kv, key, value, create_revision, mod_revision, version, lease
	view history, time, who, impersonator, verb, subresource, manager, action, resource, kind, namespace, name, revision, audit_id, key
`)

// Examine compares the schema, and has amcheck look at indexes and tables if it is installed in the database.
func (l source) Examine(ctx context.Context, _ []string, found func(in, what string)) error {
	conn, err := l.connect(ctx, l.pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("examine the database: %w", l.classify(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		looks := []func(context.Context, pgx.Tx, func(in, what string)) error{l.examineShape, examineTriggers, l.examineVersion, l.examineIndexes, l.examineLarge, l.examinePages}
		for _, look := range looks {
			err := l.examinePart(ctx, tx, func(tx pgx.Tx) error { return look(ctx, tx, found) })
			if passes(err) || ctx.Err() != nil {
				return err
			}
			if err != nil {
				found("the database", oneLine(err))
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("examine the database: %w", l.damage(err))
	}
	return nil
}

// examineShape compares tables, indexes and views with those that the migrations make.
func (l source) examineShape(ctx context.Context, tx pgx.Tx, found func(in, what string)) error {
	lines, err := queryTexts(ctx, tx, `
		WITH own AS (SELECT c.oid, c.relname, c.relkind, c.relpersistence
		             FROM unnest(ARRAY['log', 'meta', 'lease', 'author', 'past', 'kept', 'objects', 'kv', 'history']) t
		             JOIN pg_class c ON c.oid = to_regclass(t))
		SELECT 'table ' || own.relname || ', ' || CASE own.relpersistence WHEN 'p' THEN 'permanent' ELSE 'not permanent: a crash empties it' END
		FROM own
		WHERE own.relkind IN ('r', 'p')
		UNION ALL
		SELECT 'column ' || own.relname || '.' || a.attname || ', ' || format_type(a.atttypid, a.atttypmod)
		       || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
		       || coalesce((SELECT ' collate ' || c.collname FROM pg_collation c WHERE c.oid = a.attcollation AND c.collname <> 'default'), '')
		FROM own JOIN pg_attribute a ON a.attrelid = own.oid
		WHERE own.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
		UNION ALL
		SELECT 'view ' || own.relname || ', ' || string_agg(a.attname, ', ' ORDER BY a.attnum)
		FROM own JOIN pg_attribute a ON a.attrelid = own.oid
		WHERE own.relkind = 'v' AND a.attnum > 0 AND NOT a.attisdropped
		GROUP BY own.relname
		UNION ALL
		SELECT 'index ' || c.relname || ', '
		       || CASE WHEN i.indisvalid AND i.indisready THEN '' ELSE 'invalid ' END
		       || CASE WHEN i.indisunique THEN 'unique ' ELSE '' END || 'on ' || own.relname || ' ('
		       || (SELECT string_agg(pg_get_indexdef(i.indexrelid, n, false), ', ' ORDER BY n) FROM generate_series(1, i.indnkeyatts) n) || ')'
		       || CASE WHEN i.indpred IS NULL THEN '' ELSE ' in part' END
		FROM own JOIN pg_index i ON i.indrelid = own.oid JOIN pg_class c ON c.oid = i.indexrelid`)
	if err != nil {
		return err
	}
	shape.Parse(strings.Join(lines, "\n")).Compare(made, found)
	return nil
}

// examineTriggers looks for triggers and rules, of which the migrations make none.
func examineTriggers(ctx context.Context, tx pgx.Tx, found func(in, what string)) error {
	names, err := queryTexts(ctx, tx, `
		WITH own AS (SELECT c.oid, c.relname
		             FROM unnest(ARRAY['log', 'meta', 'lease', 'author', 'past', 'kept']) t
		             JOIN pg_class c ON c.oid = to_regclass(t))
		SELECT own.relname || '.' || tgname FROM own JOIN pg_trigger ON tgrelid = own.oid WHERE NOT tgisinternal
		UNION ALL
		SELECT own.relname || '.' || rulename FROM own JOIN pg_rewrite ON ev_class = own.oid WHERE rulename <> '_RETURN'
		ORDER BY 1`)
	for _, name := range names {
		found("trigger "+name, shape.Trigger)
	}
	return err
}

// examineIndexes counts the rows of table past by each of its indexes, of which the search for damage reads only one.
func (l source) examineIndexes(ctx context.Context, tx pgx.Tx, found func(in, what string)) error {
	if _, err := tx.Exec(ctx, `SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off`); err != nil {
		return err
	}
	all, first := int64(0), true
	for _, index := range []struct{ name, count string }{
		{"past_pkey", `SELECT count(*) FROM (SELECT FROM past ORDER BY id) p`},
		{"past_key_id", `SELECT count(*) FROM (SELECT FROM past ORDER BY key, id) p`},
		{"past_expires", `SELECT count(*) FROM (SELECT FROM past ORDER BY expires) p`},
	} {
		var rows int64
		err := l.examinePart(ctx, tx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, index.count).Scan(&rows) })
		switch {
		case passes(err):
			return err
		case err != nil:
			found("index "+index.name, oneLine(err))
		case first:
			all, first = rows, false
		case rows != all:
			found("index "+index.name, fmt.Sprintf("it leads to %d rows, and another index to %d", rows, all))
		}
	}
	return nil
}

// examineVersion looks at what the migrations have noted. A newer version is that of a newer plinth.
func (l source) examineVersion(ctx context.Context, tx pgx.Tx, found func(in, what string)) error {
	var version int
	var dirty bool
	err := l.examinePart(ctx, tx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty)
	})
	if passes(err) {
		return err
	}
	if err != nil {
		found("table schema_migrations", oneLine(err))
		return nil
	}
	if done, err := migrations.Check(migrations.Postgres, version, dirty); err == nil && !done {
		found("table schema_migrations", fmt.Sprintf("version %d, unfinished: %t", version, dirty))
	} else if err != nil && !errors.Is(err, migrations.ErrNewer) {
		return err
	}
	return nil
}
