// Package logtest is the one suite that every dialect passes, and the real servers it
// runs on. Its test files are named after the files of the dialects that they test:
// append_test.go goes through each dialect's append.go or, in SQLite, write.go.
package logtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// Servers to use instead of throw-away ones, as DSNs with the right to create databases.
const (
	EnvPostgres = "PLINTH_TEST_POSTGRES"
	EnvMySQL    = "PLINTH_TEST_MYSQL"
)

// Postgres returns the DSN of a fresh database, which is dropped when the test ends. The
// server is the one EnvPostgres names, else one started for this test process.
func Postgres(t testing.TB) string {
	t.Helper()
	admin := sharedPostgres(t)
	name := databaseName()
	execPostgres(t, admin, `CREATE DATABASE `+name)
	t.Cleanup(func() { execPostgres(t, admin, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`) })
	return withDatabase(t, admin, name)
}

// MariaDB returns the DSN of a fresh database, which is dropped when the test ends. The
// server is the one EnvMySQL names, else one started for this test process.
func MariaDB(t testing.TB) string {
	t.Helper()
	admin := sharedMariaDB(t)
	name := databaseName()
	execMySQL(t, admin, `CREATE DATABASE `+name)
	t.Cleanup(func() { execMySQL(t, admin, `DROP DATABASE IF EXISTS `+name) })
	return withDatabase(t, admin, name)
}

// WithPassword gives a database of Postgres or MariaDB to a user of its own who has that password,
// and returns the DSN for that user without the password.
func WithPassword(t testing.TB, dsn, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's DSN cannot be parsed")
	}
	user, database := "plinth"+randomName(), u.Path[1:]
	if u.Scheme[0] == 'p' {
		execPostgres(t, dsn, fmt.Sprintf(`CREATE ROLE %q LOGIN PASSWORD '%s'; ALTER DATABASE %q OWNER TO %[1]q; GRANT ALL ON SCHEMA public TO %[1]q`, user, password, database))
		t.Cleanup(func() {
			execPostgres(t, dsn, fmt.Sprintf(`REASSIGN OWNED BY %q TO CURRENT_USER; DROP OWNED BY %[1]q CASCADE; DROP ROLE %[1]q`, user))
		})
	} else {
		execMySQL(t, dsn, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY '%s'", user, password))
		t.Cleanup(func() { execMySQL(t, dsn, fmt.Sprintf("DROP USER '%s'@'%%'", user)) })
		execMySQL(t, dsn, fmt.Sprintf("GRANT ALL ON `%s`.* TO '%s'@'%%'", database, user))
	}
	u.User = url.User(user)
	return u.String()
}

// Exec runs statements in a database, whatever its dialect, beside those who have it open.
func Exec(t testing.TB, dsn, query string) {
	t.Helper()
	path, isFile := strings.CutPrefix(dsn, "sqlite://")
	switch {
	case isFile:
		db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=10000")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	case dsn[0] == 'p':
		execPostgres(t, dsn, query)
	default:
		execMySQL(t, dsn, query)
	}
}

// StartPostgres starts a server for this test alone, which may stop and kill it.
func StartPostgres(t testing.TB) *dbserver.Server {
	t.Helper()
	s, err := dbserver.StartPostgres(true)
	return started(t, s, err)
}

// StartMariaDB starts a server for this test alone, which may stop and kill it.
func StartMariaDB(t testing.TB) *dbserver.Server {
	t.Helper()
	s, err := dbserver.StartMariaDB(true)
	return started(t, s, err)
}

// StartPgBouncer starts PgBouncer for this test alone, in transaction mode before the server of a DSN, and
// returns the DSN of the same database through it.
func StartPgBouncer(t testing.TB, dsn string) string {
	t.Helper()
	s, err := dbserver.StartPgBouncer(dsn)
	if errors.Is(err, dbserver.ErrNotInstalled) {
		t.Fatalf("%v\ninstall the package pgbouncer, or run\n\tgo run ./dialects/logtest/withservers -- go test ./...", err)
	}
	started(t, s, err)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's DSN cannot be parsed")
	}
	return s.DSN(u.Path[1:])
}

// CreateDatabase creates a database on a server started for this test and returns its DSN.
func CreateDatabase(t testing.TB, s *dbserver.Server) string {
	t.Helper()
	name := databaseName()
	admin := s.DSN("")
	if admin[0] == 'p' {
		execPostgres(t, admin, `CREATE DATABASE `+name)
	} else {
		execMySQL(t, admin, `CREATE DATABASE `+name)
	}
	return s.DSN(name)
}

func started(t testing.TB, s *dbserver.Server, err error) *dbserver.Server {
	t.Helper()
	if errors.Is(err, dbserver.ErrNotInstalled) {
		t.Fatalf("%v\ninstall the packages postgresql and mariadb-server, or name servers in %s and %s, or run\n\tgo run ./dialects/logtest/withservers -- go test ./...", err, EnvPostgres, EnvMySQL)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
	})
	return s
}

// The servers of this test process. They end with it (see dbserver).
var (
	oncePostgres = sync.OnceValues(func() (*dbserver.Server, error) { return dbserver.StartPostgres(false) })
	onceMariaDB  = sync.OnceValues(func() (*dbserver.Server, error) { return dbserver.StartMariaDB(false) })
)

func sharedPostgres(t testing.TB) string { return shared(t, EnvPostgres, oncePostgres) }
func sharedMariaDB(t testing.TB) string  { return shared(t, EnvMySQL, onceMariaDB) }

func shared(t testing.TB, env string, once func() (*dbserver.Server, error)) string {
	t.Helper()
	if dsn := os.Getenv(env); dsn != "" {
		return dsn
	}
	s, err := once()
	if err != nil {
		started(t, nil, err)
	}
	return s.DSN("")
}

// databaseName is unlikely to exist, also on a server that several test runs share.
func databaseName() string { return fmt.Sprintf("plinth_test_%d_%s", os.Getpid(), randomName()) }

func withDatabase(t testing.TB, dsn, name string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's DSN cannot be parsed")
	}
	u.Path = "/" + name
	return u.String()
}

func execPostgres(t testing.TB, dsn, query string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func execMySQL(t testing.TB, dsn, query string) {
	t.Helper()
	db, err := dbserver.OpenMySQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func randomName() string { return strings.ToLower(rand.Text()[:12]) }
