package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plinth-io/plinth/dialects/internal/shape"
	"github.com/plinth-io/plinth/migrations"
)

// made is what the migrations make.
var made = shape.Parse(`
	table log, InnoDB
	table meta, InnoDB
	table lease, InnoDB
	table author, InnoDB
	table past, InnoDB
	table kept, InnoDB
	column log.id, bigint not null
	column log.key, varbinary(1024) not null
	column log.create_id, bigint not null
	column log.deleted, tinyint not null
	column log.at, bigint not null
	column log.value, longblob not null
	column log.version, bigint
	column log.lease, bigint
	column log.author, int
	column log.audit_id, varbinary(64)
	column meta.name, varbinary(64) not null
	column meta.value, varbinary(255) not null
	column lease.id, bigint not null
	column lease.ttl, bigint not null
	column lease.expires, bigint not null
	column author.id, int not null
	column author.who, varbinary(512) not null
	column author.impersonator, varbinary(512) not null
	column author.verb, varbinary(64) not null
	column author.subresource, varbinary(512) not null
	column author.manager, varbinary(512) not null
	column past.id, bigint not null
	column past.key, varbinary(1024) not null
	column past.create_id, bigint not null
	column past.deleted, tinyint not null
	column past.at, bigint not null
	column past.until_id, bigint not null
	column past.until_at, bigint not null
	column past.expires, bigint not null
	column past.author, int
	column past.audit_id, varbinary(64)
	column past.value, longblob not null
	column kept.prefix, varbinary(1024) not null
	column kept.lost, bigint not null
	index log.PRIMARY, unique on (id)
	index log.log_key_id, unique on (key, id)
	index meta.PRIMARY, unique on (name)
	index lease.PRIMARY, unique on (id)
	index lease.lease_expires, on (expires)
	index author.PRIMARY, unique on (id)
	index past.PRIMARY, unique on (id)
	index past.past_key_id, unique on (key, id)
	index past.past_expires, on (expires)
	index kept.PRIMARY, unique on (prefix)
	view objects, api_version, kind, namespace, name, resource_version, created_at, updated_at, object, key
	view kv, key, value, create_revision, mod_revision, version, lease
	view history, time, who, impersonator, verb, subresource, manager, action, resource, kind, namespace, name, revision, audit_id, key
`)

// Examine compares the schema, and has the server read all indexes of all tables. Without QUICK it would compare more,
// and writers would have to wait meanwhile.
func (l source) Examine(ctx context.Context, damaged []string, found func(in, what string)) error {
	db := sql.OpenDB(l.freezer)
	defer db.Close()
	tables := func(ctx context.Context, db *sql.DB, found func(in, what string)) error {
		return l.examineTables(ctx, db, damaged, found)
	}
	for _, look := range []func(context.Context, *sql.DB, func(in, what string)) error{l.examineShape, examineTriggers, l.examineVersion, tables} {
		err := l.damage(look(ctx, db, found))
		if passes(err) || ctx.Err() != nil {
			return fmt.Errorf("examine the database: %w", err)
		}
		if err != nil {
			found("the database", err.Error())
		}
	}
	return nil
}

// examineShape compares tables, columns, indexes and views with those that the migrations make.
func (l source) examineShape(ctx context.Context, db *sql.DB, found func(in, what string)) error {
	lines, err := texts(db.QueryContext(ctx, `
		SELECT CONCAT('table ', table_name, ', ', engine) FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'
		UNION ALL
		SELECT CONCAT('column ', c.table_name, '.', c.column_name, ', ', c.data_type,
		              CASE c.data_type WHEN 'varbinary' THEN CONCAT('(', c.character_maximum_length, ')') ELSE '' END,
		              CASE c.is_nullable WHEN 'NO' THEN ' not null' ELSE '' END)
		FROM information_schema.columns c
		WHERE c.table_schema = DATABASE() AND c.table_name IN ('log', 'meta', 'lease', 'author', 'past', 'kept')
		UNION ALL
		SELECT CONCAT('index ', s.table_name, '.', s.index_name, ', ', CASE MAX(s.non_unique) WHEN 0 THEN 'unique ' ELSE '' END,
		              'on (', GROUP_CONCAT(s.column_name ORDER BY s.seq_in_index SEPARATOR ', '), ')')
		FROM information_schema.statistics s
		WHERE s.table_schema = DATABASE() AND s.table_name IN ('log', 'meta', 'lease', 'author', 'past', 'kept')
		GROUP BY s.table_name, s.index_name
		UNION ALL
		SELECT CONCAT('view ', c.table_name, ', ', GROUP_CONCAT(c.column_name ORDER BY c.ordinal_position SEPARATOR ', '))
		FROM information_schema.columns c
		WHERE c.table_schema = DATABASE() AND c.table_name IN ('objects', 'kv', 'history')
		GROUP BY c.table_name`))
	if err != nil {
		return err
	}
	shape.Parse(strings.Join(lines, "\n")).Compare(made, found)
	return nil
}

// examineTriggers looks for triggers, of which the migrations make none. Users see those of tables on which they have
// the right TRIGGER.
func examineTriggers(ctx context.Context, db *sql.DB, found func(in, what string)) error {
	names, err := texts(db.QueryContext(ctx, `
		SELECT CONCAT(event_object_table, '.', trigger_name) FROM information_schema.triggers
		WHERE event_object_schema = DATABASE() AND event_object_table IN ('log', 'meta', 'lease', 'author', 'past', 'kept')
		ORDER BY 1`))
	for _, name := range names {
		found("trigger "+name, shape.Trigger)
	}
	return err
}

// examineVersion looks at what the migrations have noted. A newer version is that of a newer plinth.
func (l source) examineVersion(ctx context.Context, db *sql.DB, found func(in, what string)) error {
	var version int
	var dirty bool
	err := l.damage(db.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty))
	if passes(err) {
		return err
	}
	if err == nil {
		var done bool
		if done, err = migrations.Check(migrations.MySQL, version, dirty); err == nil && !done {
			err = fmt.Errorf("version %d, unfinished: %t", version, dirty)
		}
	}
	if err != nil && !errors.Is(err, migrations.ErrNewer) {
		found("table schema_migrations", err.Error())
	}
	return nil
}

// examineTables has the server look at tables, and at whether views can be read. It counts the rows of each index.
func (l source) examineTables(ctx context.Context, db *sql.DB, damaged []string, found func(in, what string)) error {
	for name, check := range map[string]string{
		"log": `CHECK TABLE log QUICK`, "meta": `CHECK TABLE meta QUICK`, "lease": `CHECK TABLE lease QUICK`, "author": `CHECK TABLE author QUICK`,
		"past": `CHECK TABLE past QUICK`, "kept": `CHECK TABLE kept QUICK`, "schema_migrations": `CHECK TABLE schema_migrations QUICK`,
		"objects": `CHECK TABLE objects QUICK`, "kv": `CHECK TABLE kv QUICK`, "history": `CHECK TABLE history QUICK`,
	} {
		if slices.Contains(damaged, name) {
			continue
		}
		rows, err := db.QueryContext(ctx, check)
		if err == nil {
			err = readCheck(rows, func(what string) { found("table "+name, "CHECK TABLE: "+what) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readCheck(rows *sql.Rows, found func(what string)) error {
	defer rows.Close()
	for rows.Next() {
		var table, op, kind, text string
		if err := rows.Scan(&table, &op, &kind, &text); err != nil {
			return err
		}
		if ok := kind == "status" && text == "OK" || kind == "note"; !ok {
			found(kind + ": " + text)
		}
	}
	return rows.Err()
}

// texts reads the answer of a query for one text.
func texts(rows *sql.Rows, err error) (all []string, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text sql.NullString
		if err := rows.Scan(&text); err != nil {
			return all, err
		}
		all = append(all, text.String)
	}
	return all, rows.Err()
}
