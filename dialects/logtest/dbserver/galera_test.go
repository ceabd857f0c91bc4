package dbserver

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestHAGalera has nodes stop and die: those that are left go on, and each comes back with what it has missed.
func TestHAGalera(t *testing.T) {
	if !strings.Contains(os.Getenv("PLINTH_TEST_HA"), "galera") {
		t.Skip("make test-ha runs this: it needs a Galera cluster")
	}
	g, err := StartGalera(3)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ask := func(n int, query string) (found int) {
		t.Helper()
		db, err := OpenMySQL(g.Nodes[n].DSN(""))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRowContext(t.Context(), query).Scan(&found); err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatalf("%s: %v", query, err)
		}
		return found
	}
	ask(0, `CREATE DATABASE probe`)
	ask(0, `CREATE TABLE probe.probe (id INT PRIMARY KEY)`)
	for i, end := range []func(*Server){(*Server).Stop, (*Server).Kill} {
		end(g.Nodes[i])
		ask(2, fmt.Sprintf(`INSERT INTO probe.probe VALUES (%d)`, i))
		if err := g.Nodes[i].Start(); err != nil {
			t.Fatal(err)
		}
		if found := ask(i, `SELECT COUNT(*) FROM probe.probe`); found != i+1 {
			t.Errorf("a node that has come back has %d rows of %d", found, i+1)
		}
	}
}
