package rest_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/mattn/go-sqlite3"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/server/rest"
)

// TestManagersInSQL wants the queries of docs/sql.md about managers to have the same rows in each
// database.
func TestManagersInSQL(t *testing.T) {
	for i, d := range []struct {
		name  string
		fresh func(testing.TB) string
		query func(t *testing.T, dsn, query string) []string
	}{
		{"sqlite", func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "x.db") }, querySQLite},
		{"postgres", logtest.Postgres, queryPostgres},
		{"mariadb", logtest.MariaDB, queryMySQL},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dsn := d.fresh(t)
			h := newHarnessOn(t, dsn, awayOnPostgres, rest.Options{})
			h.play("x", []applyStep{
				{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), 201, "kind=Deployment"},
				{"merge d as bob", `{"spec":{"replicas":2}}`, 200, "kind=Deployment"},
				{"merge d/status as carol", `{"status":{"replicas":1}}`, 200, "kind=Deployment"},
			})
			got := d.query(t, dsn, documentedQuery(t, i))
			want := []string{
				"x d alice Apply  f:spec",
				"x d bob Update  f:spec",
				"x d carol Update status f:status",
			}
			if len(got) != len(want) {
				t.Fatalf("got %q", got)
			}
			for i := range want {
				if !sameWriter(got, want[i]) {
					t.Errorf("%q is not among %q", want[i], got)
				}
			}
		})
	}
}

// sameWriter finds a row by its first words and the first field.
func sameWriter(rows []string, want string) bool {
	who, field, _ := strings.Cut(want, " f:")
	for _, row := range rows {
		if strings.HasPrefix(row, who+" ") && strings.Contains(row, `"f:`+field+`"`) {
			return true
		}
	}
	return false
}

// documentedQuery is the nth query of the section about managers.
func documentedQuery(t *testing.T, n int) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Who owns which fields\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```sql\n")
	if len(blocks) != 4 {
		t.Fatalf("%d queries", len(blocks)-1)
	}
	query, _, _ := strings.Cut(blocks[n+1], "```")
	return query
}

func querySQLite(t *testing.T, dsn, query string) []string {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+strings.TrimPrefix(dsn, "sqlite://")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	return querySQL(t, db, query)
}

func queryMySQL(t *testing.T, dsn, query string) []string {
	t.Helper()
	db, err := dbserver.OpenMySQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return querySQL(t, db, query)
}

func querySQL(t *testing.T, db *sql.DB, query string) (list []string) {
	t.Helper()
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		list = append(list, scanWriter(t, rows.Scan))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func queryPostgres(t *testing.T, dsn, query string) (list []string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		list = append(list, scanWriter(t, rows.Scan))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func scanWriter(t *testing.T, scan func(...any) error) string {
	t.Helper()
	var columns [7]sql.NullString // namespace, name, manager, operation, subresource, changed_at, fields
	to := make([]any, len(columns))
	for i := range columns {
		to[i] = &columns[i]
	}
	if err := scan(to...); err != nil {
		t.Fatal(err)
	}
	var words []string
	for i, c := range columns {
		if i != 5 {
			words = append(words, c.String)
		}
	}
	return strings.Join(words, " ")
}
