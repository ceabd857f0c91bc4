package logtest

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
)

// Dialect is one of the databases that plinth runs on.
type Dialect struct {
	Name    string
	Fresh   func(testing.TB) string // makes a database that goes with the test, and returns its DSN
	Servers int                     // how many servers of plinth a test has run on one database
}

// Dialects are all of them.
var Dialects = []Dialect{{"sqlite", SQLite, 1}, {"postgres", Postgres, 2}, {"mariadb", MariaDB, 2}}

// SQLite returns the DSN of a new file.
func SQLite(t testing.TB) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "plinth.db")
}

// Each runs test on each dialect, side by side.
func Each(t *testing.T, test func(t *testing.T, d Dialect)) { each(t, Dialects, test) }

// Everywhere is whether tests that run on some dialects are to run on each (CONTRIBUTING.md).
func Everywhere() bool { return os.Getenv("PLINTH_TEST_EVERYWHERE") != "" }

// AloneAndShared runs test on a dialect whose databases one server has alone and on one whose databases servers
// share, side by side: it is for what depends on that, and not on the SQL, which tests of the log compare on each.
func AloneAndShared(t *testing.T, test func(t *testing.T, d Dialect)) {
	if Everywhere() {
		Each(t, test)
		return
	}
	each(t, Dialects[:2], test)
}

// EachShared is Each for the dialects whose databases servers can share.
func EachShared(t *testing.T, test func(t *testing.T, d Dialect)) {
	each(t, slices.DeleteFunc(slices.Clone(Dialects), func(d Dialect) bool { return d.Servers == 1 }), test)
}

func each(t *testing.T, dialects []Dialect, test func(t *testing.T, d Dialect)) {
	for _, d := range dialects {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// AtOnce has as many tests run at once, unless -parallel says something else than the number of processors. TestMain
// calls it where tests wait for databases or other processes most of their time.
func AtOnce(tests int) {
	flag.Parse()
	if n := flag.Lookup("test.parallel").Value; n.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := n.Set(strconv.Itoa(tests)); err != nil {
			panic(err) // not a number
		}
	}
}
