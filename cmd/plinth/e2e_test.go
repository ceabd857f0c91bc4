package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/quiet"
)

func init() { quiet.Libraries(os.Stderr) }

// dialect is one kind of database.
type dialect struct {
	name  string
	fresh func(t testing.TB) string // DSN of an empty database that goes with the test
}

var dialectsUnderTest = []dialect{
	{"sqlite", func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "plinth.db") }},
	{"postgres", logtest.Postgres},
	{"mariadb", logtest.MariaDB},
}

// forEach runs test on a fresh database of each dialect, side by side.
func forEach(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Parallel()
	for _, d := range dialectsUnderTest {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d.fresh(t))
		})
	}
}
