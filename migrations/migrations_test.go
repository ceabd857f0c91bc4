package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3"

	"github.com/google/go-cmp/cmp"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// database is a migrated database, opened without plinth.
type database struct {
	dialect migrations.Dialect
	dsn     string
	db      *sql.DB
}

func forEach(t *testing.T, test func(t *testing.T, d database)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "plinth.db")
		db, err := sql.Open("sqlite3", path)
		run(t, database{migrations.SQLite, "sqlite://" + path, db}, err, test)
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := logtest.Postgres(t)
		db, err := sql.Open("pgx", dsn)
		run(t, database{migrations.Postgres, dsn, db}, err, test)
	})
	t.Run("mysql", func(t *testing.T) {
		dsn := logtest.MariaDB(t)
		db, err := dbserver.OpenMySQL(dsn)
		run(t, database{migrations.MySQL, dsn, db}, err, test)
	})
}

func run(t *testing.T, d database, err error, test func(t *testing.T, d database)) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer d.db.Close()
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	test(t, d)
}

// open opens and closes the database as plinth does, which migrates it.
func (d database) open() error {
	l, err := dialects.Open(context.Background(), d.dsn, dialects.Options{})
	if err != nil {
		return err
	}
	return l.Close()
}

func (d database) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := d.db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// down runs a migration down, statement by statement.
func (d database) down(t *testing.T, file string) {
	t.Helper()
	down, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range strings.Split(strings.TrimSpace(string(down)), ";\n") {
		d.exec(t, statement)
	}
}

// TestInterruptedMigration leaves the database as a crash in the middle of a migration does: marked dirty, with a part
// of it done. SQLite does all of it or nothing.
func TestInterruptedMigration(t *testing.T) {
	forEach(t, func(t *testing.T, d database) {
		if d.dialect == migrations.SQLite {
			d.down(t, "sqlite/0005_past.down.sql")
		} else {
			d.exec(t, `DROP VIEW history`)
			d.exec(t, `DROP TABLE kept`)
		}
		d.exec(t, `UPDATE schema_migrations SET version = 5, dirty = true`)
		if err := d.open(); err != nil {
			t.Fatal(err)
		}
		want, err := migrations.Schema(d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, dump(t, d)); diff != "" {
			t.Errorf("schema after the second run (-want +got):\n%s", diff)
		}
	})
}

// TestNotedTwice is for a crash of SQLite between a migration and the library's own note of it: the migration has noted
// itself.
func TestNotedTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plinth.db")
	db, err := sql.Open("sqlite3", path)
	run(t, database{migrations.SQLite, "sqlite://" + path, db}, err, func(t *testing.T, d database) {
		d.down(t, "sqlite/0005_past.down.sql")
		d.exec(t, `UPDATE schema_migrations SET version = 5, dirty = true`)
		up, err := os.ReadFile("sqlite/0005_past.up.sql")
		if err != nil {
			t.Fatal(err)
		}
		d.exec(t, string(up))
		if err := d.open(); err != nil {
			t.Error(err)
		}
	})
}

// TestOldLogIsAnAPI: a log that has rows from before there were kinds holds objects.
func TestOldLogIsAnAPI(t *testing.T) {
	forEach(t, func(t *testing.T, d database) {
		d.down(t, string(d.dialect)+"/0005_past.down.sql")
		d.down(t, string(d.dialect)+"/0004_author.down.sql")
		d.down(t, string(d.dialect)+"/0003_raw.down.sql")
		d.exec(t, `UPDATE schema_migrations SET version = 2`)
		key := map[bool]string{true: "`key`", false: "key"}[d.dialect == migrations.MySQL]
		at := map[bool]string{true: "`at`", false: "at"}[d.dialect == migrations.MySQL]
		deleted := map[bool]string{true: "false", false: "0"}[d.dialect == migrations.Postgres]
		d.exec(t, `INSERT INTO log (id, `+key+`, create_id, deleted, `+at+`, value) VALUES (1, '/registry/a', 1, `+deleted+`, 1, '{}')`)
		l, err := dialects.Open(context.Background(), d.dsn, dialects.Options{Kind: changelog.KindEtcd})
		if err == nil {
			l.Close()
		}
		if !errors.Is(err, changelog.ErrKind) {
			t.Errorf("opened for raw keys: %v", err)
		}
		if err := d.open(); err != nil {
			t.Errorf("opened for objects: %v", err)
		}
	})
}

func TestManyOpenAtOnce(t *testing.T) {
	forEach(t, func(t *testing.T, d database) {
		if d.dialect == migrations.SQLite {
			return // one process, one Log
		}
		d.exec(t, `DROP VIEW objects`)
		d.exec(t, `DROP VIEW history`)
		d.exec(t, `DROP VIEW kv`)
		d.exec(t, `DROP TABLE author`)
		d.exec(t, `DROP TABLE past`)
		d.exec(t, `DROP TABLE kept`)
		d.exec(t, `DROP TABLE lease`)
		d.exec(t, `DROP TABLE meta`)
		d.exec(t, `DROP TABLE log`)
		d.exec(t, `DROP TABLE schema_migrations`)
		errs := make(chan error)
		for range 4 {
			go func() { errs <- d.open() }()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestDown(t *testing.T) {
	forEach(t, func(t *testing.T, d database) {
		downs, err := filepath.Glob(filepath.Join(string(d.dialect), "*.down.sql"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range slices.Backward(downs) {
			d.down(t, file)
		}
		if got := dump(t, d); strings.Contains(got, "log") || strings.Contains(got, "past") {
			t.Errorf("the last migration down leaves\n%s", got)
		}
	})
}
