package migrations_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3"

	"github.com/plinth-io/plinth/migrations"
)

var update = flag.Bool("update", false, "write the schema dumps anew")

// TestSchemaDump compares the committed dumps with what the migrations make.
// After a change of the schema: go test ./migrations -run SchemaDump -update
func TestSchemaDump(t *testing.T) {
	forEach(t, func(t *testing.T, d database) {
		got := dump(t, d)
		if *update {
			if err := os.WriteFile(filepath.Join(string(d.dialect), "schema.sql"), []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := migrations.Schema(d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s/schema.sql is stale; run go test ./migrations -run SchemaDump -update (-committed +made):\n%s", d.dialect, diff)
		}
	})
}

func TestNewerSchemaIsRefused(t *testing.T) {
	forEach(t, func(t *testing.T, d database) {
		d.exec(t, `UPDATE schema_migrations SET version = 99`)
		err := d.open()
		if !errors.Is(err, migrations.ErrNewer) || strings.Contains(err.Error(), "\n") ||
			!strings.Contains(err.Error(), "version 99") || !strings.Contains(err.Error(), "use a newer plinth") {
			t.Errorf("open: %v", err)
		}
	})
}

// dump writes the schema down as the database itself describes it.
func dump(t *testing.T, d database) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "-- The schema after all migrations, as the database describes it. Not to be edited:\n-- go test ./migrations -run SchemaDump -update\n")
	switch d.dialect {
	case migrations.SQLite:
		for _, s := range column(t, d, `SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND tbl_name <> 'schema_migrations' ORDER BY rowid`) {
			fmt.Fprintf(&out, "\n%s;\n", s)
		}
	case migrations.Postgres:
		dumpPostgres(t, d, &out)
	case migrations.MySQL:
		dumpMySQL(t, d, &out)
	}
	return out.String()
}

func dumpPostgres(t *testing.T, d database, out *strings.Builder) {
	t.Helper()
	for _, table := range []string{"log", "meta", "lease", "author", "past", "kept"} {
		columns := column(t, d, `
			SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
			       || CASE WHEN a.attcollation <> 0 THEN ' COLLATE "' || (SELECT collname FROM pg_collation c WHERE c.oid = a.attcollation) || '"' ELSE '' END
			       || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
			FROM pg_attribute a
			WHERE a.attrelid = to_regclass('`+table+`') AND a.attnum > 0 AND NOT a.attisdropped
			ORDER BY a.attnum`)
		if len(columns) == 0 {
			continue
		}
		columns = append(columns, column(t, d, `
			SELECT 'CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid)
			FROM pg_constraint WHERE conrelid = to_regclass('`+table+`') AND contype <> 'n' ORDER BY conname`)...)
		options := column(t, d, `SELECT coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', '') FROM pg_class WHERE oid = to_regclass('`+table+`')`)
		fmt.Fprintf(out, "\nCREATE TABLE %s (\n    %s\n)%s;\n", table, strings.Join(columns, ",\n    "), options[0])
	}
	for _, s := range column(t, d, `SELECT indexdef FROM pg_indexes WHERE tablename IN ('log', 'lease', 'past') AND schemaname = current_schema() AND indexname NOT LIKE '%_pkey' ORDER BY indexname DESC`) {
		fmt.Fprintf(out, "\n%s;\n", s)
	}
	for _, view := range views {
		dumpView(out, view, column(t, d, `
			SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
			FROM pg_attribute a WHERE a.attrelid = to_regclass('`+view+`') ORDER BY a.attnum`))
	}
}

// mysqlNoise is a counter, and what one server writes and another does not.
var mysqlNoise = regexp.MustCompile(`(?i) AUTO_INCREMENT=[0-9]+|(?:\b(bigint)\([0-9]+\))`)

func dumpMySQL(t *testing.T, d database, out *strings.Builder) {
	t.Helper()
	for _, table := range column(t, d, `
		SELECT table_name FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name IN ('log', 'meta', 'lease', 'author', 'past', 'kept') ORDER BY table_name`) {
		var name, create string
		if err := d.db.QueryRow("SHOW CREATE TABLE "+table).Scan(&name, &create); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(out, "\n%s;\n", mysqlNoise.ReplaceAllString(create, "$1"))
	}
	for _, view := range views {
		dumpView(out, view, column(t, d, `
			SELECT CONCAT(column_name, ' ', data_type) FROM information_schema.columns
			WHERE table_schema = DATABASE() AND table_name = '`+view+`' ORDER BY ordinal_position`))
	}
}

var views = []string{"objects", "kv", "history"}

// dumpView lists the columns of a view. Each version of a server formats its definition
// differently; the migration has it as it was written.
func dumpView(out *strings.Builder, view string, columns []string) {
	if len(columns) > 0 {
		fmt.Fprintf(out, "\n-- VIEW %s:\n--     %s\n", view, strings.Join(columns, "\n--     "))
	}
}

func column(t *testing.T, d database, query string) []string {
	t.Helper()
	rows, err := d.db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
