package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	sqlite "github.com/mattn/go-sqlite3"

	"github.com/plinth-io/plinth/dialects/internal/shape"
	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// made is what the migrations make.
var made = shape.Parse(`
	column log.id, integer not null key 1
	column log.key, text not null
	column log.create_id, integer not null
	column log.deleted, integer not null
	column log.at, integer not null
	column log.value, blob not null
	column log.version, integer
	column log.lease, integer
	column log.author, integer
	column log.audit_id, blob
	column meta.name, text not null key 1
	column meta.value, text not null
	column lease.id, integer not null key 1
	column lease.ttl, integer not null
	column lease.expires, integer not null
	column author.id, integer not null key 1
	column author.who, text not null
	column author.impersonator, text not null
	column author.verb, text not null
	column author.subresource, text not null
	column author.manager, text not null
	column past.id, integer not null key 1
	column past.key, text not null
	column past.create_id, integer not null
	column past.deleted, integer not null
	column past.at, integer not null
	column past.until_id, integer not null
	column past.until_at, integer not null
	column past.expires, integer not null
	column past.author, integer
	column past.audit_id, blob
	column past.value, blob not null
	column kept.prefix, text not null key 1
	column kept.lost, integer not null
	index log_key_id, unique on log (key, id)
	index past_key_id, unique on past (key, id)
	index past_expires, on past (expires)
	index lease_expires, on lease (expires)
	view objects, api_version, kind, namespace, name, resource_version, created_at, updated_at, object, key
	view kv, key, value, create_revision, mod_revision, version, lease
	view history, time, who, impersonator, verb, subresource, manager, action, resource, kind, namespace, name, revision, audit_id, key
`)

// Examine has SQLite look at its pages and indexes, and compares the schema. The first takes about five seconds for
// a gigabyte, in one transaction, while the write-ahead log grows; a database in memory has no pages that
// could be damaged, and its writers would have to wait.
func (l source) Examine(ctx context.Context, _ []string, found func(in, what string)) error {
	l.freezing.Add(1)
	defer l.freezing.Done()
	looks := []func(context.Context, *sql.Conn, func(in, what string)) error{examineShape, examineTriggers, examineNewest, examineVersion, examineTypes}
	if l.path != "" {
		looks = append(looks, examinePages)
	}
	conn, err := l.reads.Conn(ctx)
	if err != nil {
		return fmt.Errorf("examine the database: %w", classify(err))
	}
	defer conn.Close()
	for _, look := range looks {
		err := damage(look(ctx, conn, found))
		if passes(err) || ctx.Err() != nil {
			return fmt.Errorf("examine the database: %w", err)
		}
		if err != nil {
			found("the database", err.Error())
		}
	}
	return nil
}

// examineShape compares tables, indexes and views with those that the migrations make.
func examineShape(ctx context.Context, conn *sql.Conn, found func(in, what string)) error {
	names, err := texts(conn.QueryContext(ctx, `
		SELECT type || ' ' || name FROM sqlite_schema
		WHERE type IN ('table', 'view') AND name IN ('log', 'meta', 'lease', 'author', 'past', 'kept', 'objects', 'kv', 'history')`))
	if err != nil {
		return err
	}
	is := shape.Shape{}
	for _, name := range names {
		kind, name, _ := strings.Cut(name, " ")
		if err := readShape(ctx, conn, kind, name, is); err != nil {
			found(kind+" "+name, err.Error())
		}
	}
	is.Compare(made, found)
	return nil
}

// examineTriggers looks for triggers, of which the migrations make none.
func examineTriggers(ctx context.Context, conn *sql.Conn, found func(in, what string)) error {
	names, err := texts(conn.QueryContext(ctx, `
		SELECT tbl_name || '.' || name FROM sqlite_schema
		WHERE type = 'trigger' AND tbl_name IN ('log', 'meta', 'lease', 'author', 'past', 'kept')
		ORDER BY 1`))
	for _, name := range names {
		found("trigger "+name, shape.Trigger)
	}
	return err
}

// examineNewest compares the newest row with what SQLite has noted as the highest id that was ever drawn. Only
// Forget deletes the newest row, and raises the floor to it.
func examineNewest(ctx context.Context, conn *sql.Conn, found func(in, what string)) error {
	var drawn, head int64
	err := conn.QueryRowContext(ctx, `
		SELECT coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'log'), 0),
		       max(coalesce((SELECT max(id) FROM log), 0), coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'), 0))`).Scan(&drawn, &head)
	if err == nil && drawn > head {
		found("table log", fmt.Sprintf("revision %d was written, and what is after revision %d is missing", drawn, head))
	}
	return err
}

// readShape reads the columns and indexes of a table, or the columns of a view.
func readShape(ctx context.Context, conn *sql.Conn, kind, name string, is shape.Shape) error {
	if kind == "view" {
		columns, err := texts(conn.QueryContext(ctx, `SELECT name FROM pragma_table_info(?) ORDER BY cid`, name))
		is["view "+name] = strings.Join(columns, ", ")
		return err
	}
	lines, err := texts(conn.QueryContext(ctx, `
		SELECT 'column ' || ?1 || '.' || name || ', ' || lower(type)
		       || CASE "notnull" WHEN 1 THEN ' not null' ELSE CASE WHEN pk > 0 AND lower(type) = 'integer' THEN ' not null' ELSE '' END END
		       || CASE WHEN pk > 0 THEN ' key ' || pk ELSE '' END
		FROM pragma_table_info(?1)
		UNION ALL
		SELECT 'index ' || i.name || ', ' || CASE i."unique" WHEN 1 THEN 'unique ' ELSE '' END || 'on ' || ?1 || ' ('
		       || (SELECT group_concat(c.name, ', ') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno) c) || ')'
		FROM pragma_index_list(?1) i
		WHERE i.origin = 'c'`, name))
	for name, is2 := range shape.Parse(strings.Join(lines, "\n")) {
		is[name] = is2
	}
	return err
}

// examineVersion looks at what the migrations have noted.
func examineVersion(ctx context.Context, conn *sql.Conn, found func(in, what string)) error {
	var version int
	var dirty bool
	err := conn.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty)
	if err == nil {
		_, err = migrations.Check(migrations.SQLite, version, dirty)
		if err == nil && dirty {
			err = fmt.Errorf("a migration to version %d was not finished", version)
		}
		if errors.Is(err, migrations.ErrNewer) { // which is in the same file, and may be at work
			err = nil
		}
	}
	if err = damage(err); err != nil && !passes(err) {
		found("table schema_migrations", err.Error())
		err = nil
	}
	return err
}

// examineTypes finds values in small tables that are of another type than their columns; SQLite takes any. In log
// and past the pages are looked at for that.
func examineTypes(ctx context.Context, conn *sql.Conn, found func(in, what string)) error {
	wrong, err := texts(conn.QueryContext(ctx, `
		SELECT 'table meta, ' || hex(name) FROM meta WHERE typeof(name) <> 'text' OR typeof(value) <> 'text'
		UNION ALL
		SELECT 'table kept, ' || hex(prefix) FROM kept WHERE typeof(prefix) <> 'text' OR typeof(lost) <> 'integer'
		UNION ALL
		SELECT 'table author, ' || id FROM author
		WHERE typeof(who) <> 'text' OR typeof(impersonator) <> 'text' OR typeof(verb) <> 'text' OR typeof(subresource) <> 'text' OR typeof(manager) <> 'text'
		LIMIT 100`))
	for _, w := range wrong {
		in, row, _ := strings.Cut(w, ", ")
		found(in, "the row "+row+" has a value of another type than its column")
	}
	return err
}

// treeAt finds the number of a b-tree's first page in what integrity_check says.
var treeAt = regexp.MustCompile(`^Tree (\d+) `)

// examinePages has SQLite look at all of its pages, and whether each row is in each index.
func examinePages(ctx context.Context, conn *sql.Conn, found func(in, what string)) error {
	lines, err := texts(conn.QueryContext(ctx, `PRAGMA integrity_check(1000)`))
	var trees map[string]string
	for _, text := range lines {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == "ok" || line == "" || strings.HasPrefix(line, "*** in database") {
				continue
			}
			in := "the database"
			if root := treeAt.FindStringSubmatch(line); root != nil {
				if trees == nil {
					trees = readTrees(ctx, conn)
				}
				if of := trees[root[1]]; of != "" {
					in = of
				}
			}
			found(in, "integrity_check: "+line)
		}
	}
	return err
}

// readTrees returns which tables and indexes there are, by the numbers of their first pages.
func readTrees(ctx context.Context, conn *sql.Conn) map[string]string {
	trees := map[string]string{}
	names, _ := texts(conn.QueryContext(ctx, `SELECT rootpage || ' ' || type || ' ' || name FROM sqlite_schema WHERE rootpage > 0`))
	for _, line := range names {
		root, name, _ := strings.Cut(line, " ")
		trees[root] = name
	}
	return trees
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

// damage judges an error of those who search for damage: what cannot be read of a file that is there wraps
// changelog.ErrDamaged, or nothing; what passes wraps changelog.ErrUnavailable.
func damage(err error) error {
	var e sqlite.Error
	if !errors.As(err, &e) || errors.Is(err, changelog.ErrDamaged) {
		return err
	}
	switch e.Code {
	case sqlite.ErrIoErr:
		switch e.ExtendedCode {
		case sqlite.ErrIoErrRead, sqlite.ErrIoErrShortRead, sqlite.ErrIoErr.Extend(32), sqlite.ErrIoErr.Extend(33): // DATA, CORRUPTFS
			return fmt.Errorf("%w: %w", changelog.ErrDamaged, err)
		}
	case sqlite.ErrLocked, sqlite.ErrProtocol, sqlite.ErrSchema, sqlite.ErrInterrupt, sqlite.ErrAbort:
		return fmt.Errorf("%w: %w", changelog.ErrUnavailable, err)
	}
	return classify(err)
}

// strictInt is a number that has to be there, in a column that may have anything.
type strictInt struct{ to *int64 }

// Scan implements sql.Scanner.
func (s strictInt) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("it is %s, not a whole number", typeName(v))
	}
	*s.to = n
	return nil
}

// strictIntOrNull is a number, or 0 if there is none.
type strictIntOrNull struct{ to *int64 }

// Scan implements sql.Scanner.
func (s strictIntOrNull) Scan(v any) error {
	if *s.to = 0; v == nil {
		return nil
	}
	return strictInt(s).Scan(v)
}

// strictBool is 0 or 1.
type strictBool struct{ to *bool }

// Scan implements sql.Scanner.
func (s strictBool) Scan(v any) error {
	n, ok := v.(int64)
	if !ok || n != 0 && n != 1 {
		return fmt.Errorf("it is %s, not 0 or 1", typeName(v))
	}
	*s.to = n == 1
	return nil
}

// strictText is a text.
type strictText struct{ to *string }

// Scan implements sql.Scanner.
func (s strictText) Scan(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("it is %s, not a text", typeName(v))
	}
	*s.to = text
	return nil
}

// strictBytes are bytes, valid until the next row; nil for NULL.
type strictBytes struct{ to *[]byte }

// Scan implements sql.Scanner.
func (s strictBytes) Scan(v any) error {
	b, ok := v.([]byte)
	if !ok && v != nil {
		return fmt.Errorf("it is %s, not bytes", typeName(v))
	}
	*s.to = b
	return nil
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case int64:
		return "the number " + strconv.FormatInt(v, 10)
	case float64:
		return "a fraction"
	case string:
		return "a text"
	case []byte:
		return "bytes"
	}
	return "of another type"
}
