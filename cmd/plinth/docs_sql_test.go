package main

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// sqlObjects are the objects that the queries of the documents find.
const sqlObjects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: demo}
data: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: demo}
spec: {type: NodePort, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gone, namespace: demo}
spec:
  selector: {matchLabels: {app: gone}}
  template:
    metadata: {labels: {app: gone}}
    spec: {containers: [{name: gone, image: gone}]}
`

// TestDocumentedSQL runs the SQL blocks of all documents on each dialect that they are for, against
// a database that plinth serves, through Go's drivers, because readers choose their own client.
// Every query must find something. The last paragraph above a block names its dialects; without
// any, it is for all.
func TestDocumentedSQL(t *testing.T) {
	t.Parallel()
	var blocks []block
	for _, doc := range documents(t) {
		for _, b := range blocksOf(doc, readDocument(t, doc)) {
			switch {
			case b.language == "sql" && b.skip == "":
				blocks = append(blocks, b)
			case b.language == "sql":
				t.Logf("%s: not played: %s", b, b.skip)
			}
		}
	}
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		serveSQLObjects(t, dsn)
		db := openSQL(t, d.Name, dsn)
		run := 0
		for _, b := range blocks {
			if !isFor(b, d.Name) {
				continue
			}
			run++
			if rows, err := countRows(db, strings.Join(b.lines, "\n")); err != nil || rows == 0 {
				t.Errorf("%s: %d rows, %v", b, rows, err)
			}
		}
		if run < 4 {
			t.Errorf("only %d queries are for %s", run, d.Name)
		}
		t.Logf("%d queries run", run)
	})
}

func serveSQLObjects(t *testing.T, dsn string) {
	t.Helper()
	p := serveFor(t, filepath.Join(t.TempDir(), "data"), dsn)
	program, err := kubectltest.Path()
	must(t, err)
	for _, args := range [][]string{
		{"apply", "-f", filepath.Join(repository, "docs", "tour")},
		{"apply", "-f", "-"},
		{"delete", "deployment", "gone", "-n", "demo"},
	} {
		cmd := exec.Command(program, append([]string{"--kubeconfig", p.kubeconfig()}, args...)...)
		cmd.Stdin = strings.NewReader(sqlObjects)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// isFor tells whether the paragraph above a block names the dialect, or none.
func isFor(b block, dialect string) bool {
	names := map[string]string{"sqlite": "SQLite", "postgres": "Postgres", "mariadb": "MariaDB"}
	for _, name := range names {
		if strings.Contains(b.before, name) {
			return strings.Contains(b.before, names[dialect])
		}
	}
	return true
}

func openSQL(t *testing.T, dialect, dsn string) *sql.DB {
	t.Helper()
	var db *sql.DB
	var err error
	switch dialect {
	case "sqlite":
		db, err = sql.Open("sqlite3", "file:"+strings.TrimPrefix(dsn, "sqlite://")+"?mode=ro")
	case "postgres":
		db, err = sql.Open("pgx", dsn)
	case "mariadb":
		db, err = dbserver.OpenMySQL(dsn)
	default:
		err = fmt.Errorf("no driver for %s", dialect)
	}
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func countRows(db *sql.DB, query string) (n int, err error) {
	rows, err := db.Query(strings.TrimSuffix(strings.TrimSpace(query), ";"))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// linkSQLite makes this test binary the program sqlite3 if none is installed. It understands only
// what the documents use. withservers installs sqlite3 if it may. PLINTH_TEST_SQLITE3=none uses the
// substitute in any case.
func linkSQLite(t *testing.T, bin string) {
	t.Helper()
	if _, err := exec.LookPath("sqlite3"); err == nil && os.Getenv("PLINTH_TEST_SQLITE3") != "none" {
		return
	}
	t.Log("SQLITE3 IS NOT INSTALLED: the documents are played with a stand-in, on plinth's own driver. Install the package sqlite3.")
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, filepath.Join(bin, "sqlite3")))
}

// isSQLite tells whether this process was started as sqlite3.
func isSQLite() bool { return filepath.Base(os.Args[0]) == "sqlite3" }

// sqliteMain is sqlite3 [-header] [-column] FILE QUERY, where QUERY may be .backup FILE.
func sqliteMain() {
	args := os.Args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	if err := runSQLite(args[0], strings.Join(args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runSQLite(file, query string) error {
	db, err := sql.Open("sqlite3", "file:"+file+"?mode=ro")
	if err != nil {
		return err
	}
	defer db.Close()
	if to, backup := strings.CutPrefix(query, ".backup "); backup {
		_, err := db.Exec("VACUUM INTO ?", strings.Trim(to, "'"))
		return err
	}
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(columns, "  "))
	fmt.Println(strings.Repeat("----  ", len(columns)))
	values := make([]sql.NullString, len(columns))
	scanned := make([]any, len(columns))
	for i := range values {
		scanned[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(scanned...); err != nil {
			return err
		}
		var row []string
		for _, v := range values {
			row = append(row, v.String)
		}
		fmt.Println(strings.Join(row, "  "))
	}
	return rows.Err()
}
