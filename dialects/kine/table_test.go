package kine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// load plays testdata, which kine v0.17.5 has made in a database of that dialect.
func load(t *testing.T, d logtest.Dialect, dsn string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", d.Name+".sql"))
	must(t, err)
	switch d.Name {
	case "sqlite":
		db, err := sql.Open("sqlite3", strings.TrimPrefix(dsn, "sqlite://"))
		must(t, err)
		defer db.Close()
		_, err = db.Exec("PRAGMA journal_mode = WAL;" + string(text))
		must(t, err)
	case "postgres":
		conn, err := pgx.Connect(t.Context(), dsn)
		must(t, err)
		defer conn.Close(context.Background())
		_, err = conn.PgConn().Exec(t.Context(), string(text)).ReadAll()
		must(t, err)
	case "mariadb":
		db, err := dbserver.OpenMySQL(dsn)
		must(t, err)
		defer db.Close()
		for _, statement := range strings.Split(strings.TrimSpace(string(text)), ";\n") {
			_, err := db.Exec(strings.TrimSuffix(statement, ";"))
			must(t, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTable reads what kine has stored: after a compaction, with a delete, a key that was created
// again, an empty value, a lease, and, in MariaDB, gaps that kine has filled.
func TestTable(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		if there, err := kine.There(t.Context(), dsn, time.Minute); there || err != nil {
			t.Errorf("an empty database: %v, %v", there, err)
		}
		if _, err := kine.Open(t.Context(), dsn); !errors.Is(err, kine.ErrNoTable) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("an empty database: %v", err)
		}
		load(t, d, dsn)
		if there, err := kine.There(t.Context(), dsn, time.Minute); !there || err != nil {
			t.Errorf("kine's database: %v, %v", there, err)
		}
		table, err := kine.Open(t.Context(), dsn)
		must(t, err)
		defer table.Close()
		extent, err := table.Extent(t.Context())
		must(t, err)
		a := []int64{2, 4, 8, 9, 10, 11, 12, 13, 14, 15} // the revisions
		first, wantExtent := int64(3), kine.Extent{Revision: 15, Compacted: 8, Rows: 11}
		if d.Name == "mariadb" { // whose ids go up by more than one
			a = []int64{10, 24, 52, 59, 66, 73, 80, 87, 94, 101}
			first, wantExtent = 17, kine.Extent{Revision: 101, Compacted: 52, Rows: 20}
		}
		if extent != wantExtent {
			t.Errorf("%+v, want %+v", extent, wantExtent)
		}
		want := []kine.Row{
			{Revision: a[0], Key: "/registry/health", Created: true, CreateRevision: a[0], Value: []byte(`{"health":"true"}`)},
			{Revision: a[1], Key: "/registry/b", Created: true, CreateRevision: a[1], Value: []byte("b\x00\xff")},
			{Revision: a[2], Key: "/registry/a", CreateRevision: first, Value: []byte("three")},
			{Revision: a[3], Key: "/registry/a", CreateRevision: first, Value: []byte("four")},
			{Revision: a[4], Key: "/registry/event", Created: true, CreateRevision: a[4], Lease: 3600, Value: []byte("soon")},
			{Revision: a[5], Key: "/registry/c", Created: true, CreateRevision: a[5], Value: []byte("c1")},
			{Revision: a[6], Key: "/registry/c", Deleted: true, CreateRevision: a[5]},
			{Revision: a[7], Key: "/registry/c", Created: true, CreateRevision: a[7], Value: []byte("c2")},
			{Revision: a[8], Key: "/registry/b", CreateRevision: a[1]},
			{Revision: a[9], Key: "/registry/last", Created: true, CreateRevision: a[9], Value: []byte("last")},
		}
		for _, limit := range []int{1, 3, 100} {
			if diff := cmp.Diff(want, pages(t, table.Page, limit)); diff != "" {
				t.Errorf("pages of %d: %s", limit, diff)
			}
			current := []kine.Row{want[0], want[3], want[4], want[7], want[8], want[9]}
			if diff := cmp.Diff(current, pages(t, table.Current, limit)); diff != "" {
				t.Errorf("pages of %d of what is there: %s", limit, diff)
			}
		}
		gaps := map[[2]int64]int64{{a[0], a[9]}: a[0] + 1, {7, 15}: 0, {15, 15}: 0, {15, 20}: 0}
		if d.Name == "mariadb" {
			gaps = map[[2]int64]int64{{a[0], a[9]}: 11, {12, 21}: 0, {12, 24}: 22, {101, 108}: 0}
		}
		for between, want := range gaps {
			if got, err := table.Gap(t.Context(), between[0], between[1]); got != want || err != nil {
				t.Errorf("gap in %d: %d, %v; want %d", between, got, err, want)
			}
		}
	})
}

func pages(t *testing.T, read func(context.Context, int64, int) ([]kine.Row, int64, error), limit int) (all []kine.Row) {
	t.Helper()
	for after := int64(0); ; {
		page, next, err := read(t.Context(), after, limit)
		must(t, err)
		if all = append(all, page...); next == 0 {
			return all
		}
		after = next
	}
}

// TestTableBad has databases that cannot be read. No error shows a password.
func TestTableBad(t *testing.T) {
	dsn := logtest.SQLite(t)
	for _, path := range []string{"/no/such/file.db", "/dev/null"} {
		if _, err := kine.Open(t.Context(), "sqlite://"+path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
	must(t, os.WriteFile(strings.TrimPrefix(dsn, "sqlite://"), []byte(strings.Repeat("no database ", 100)), 0o600))
	if _, err := kine.Open(t.Context(), dsn); err == nil {
		t.Error("a file that is no database: no error")
	}
	for _, dsn := range []string{"postgres://u:hunter2@127.0.0.1:1/db", "mysql://u:hunter2@127.0.0.1:1/db"} {
		must(t, dialects.Check(dsn, dialects.Options{}))
		if _, err := kine.Open(t.Context(), dsn); err == nil || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
