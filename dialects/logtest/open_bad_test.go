package logtest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	migratedb "github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// hindrance keeps a log from being opened until release is called. dsn is where to.
type hindrance struct {
	dsn     string
	release func()
}

// TestOpenEnds opens logs that something keeps it from opening: it ends when its context
// does, and by itself after Options.Wait; and when the hindrance is gone, it opens.
func TestOpenEnds(t *testing.T) {
	for name, hinder := range map[string]func(*testing.T) hindrance{
		"postgres, lock on migrations": lockMigrationsPostgres,
		"postgres, lock on a table":    lockTablePostgres,
		"postgres, lock on the log":    lockLogPostgres,
		"postgres, silent":             func(t *testing.T) hindrance { return silent(t, "postgres") },
		"postgres, silent after login": func(t *testing.T) hindrance { return freeze(t, StartPostgres(t)) },
		"mariadb, lock on migrations":  lockMigrationsMySQL,
		"mariadb, lock on a table":     func(t *testing.T) hindrance { return lockTableMySQL(t, "schema_migrations") },
		"mariadb, lock on the log":     func(t *testing.T) hindrance { return lockTableMySQL(t, "log") },
		"mariadb, silent":              func(t *testing.T) hindrance { return silent(t, "mysql") },
		"mariadb, silent after login":  func(t *testing.T) hindrance { return freeze(t, StartMariaDB(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hinder(t)
			for _, after := range []time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond} {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				begun := time.Now()
				err := mustNotOpen(t, ctx, h.dsn, 10*time.Minute)
				if took := time.Since(begun) - after; took > 30*time.Second {
					t.Errorf("Open ended %v after its context: %v", took, err)
				}
				cancel()
			}
			begun := time.Now()
			err := mustNotOpen(t, t.Context(), h.dsn, time.Second)
			if took := time.Since(begun); took > time.Minute || !errors.Is(err, changelog.ErrUnavailable) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("with a second to wait, Open ended after %v: %v", took, err)
			}
			t.Log(err)
			if h.release != nil {
				h.release()
				openDSN(t, h.dsn).Close()
			}
		})
	}
}

func mustNotOpen(t *testing.T, ctx context.Context, dsn string, wait time.Duration) error {
	t.Helper()
	l, err := dialects.Open(ctx, dsn, dialects.Options{Wait: wait})
	if err == nil {
		l.Close()
		t.Fatal("opened")
	}
	return err
}

// silent accepts connections and says nothing.
func silent(t *testing.T, scheme string) hindrance {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // which ends the connections that it holds in its queue
	return hindrance{dsn: scheme + "://u:s3cret@" + l.Addr().String() + "/d"}
}

// freeze stops a server of the test's own.
func freeze(t *testing.T, s *dbserver.Server) hindrance {
	dsn := CreateDatabase(t, s)
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	return hindrance{dsn, func() {
		if err := s.Thaw(); err != nil {
			t.Fatal(err)
		}
	}}
}

// inPostgres runs statements in a session that lasts until release.
func inPostgres(t *testing.T, dsn string, statements string) hindrance {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, statements); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	return hindrance{dsn, func() { conn.Close(ctx) }}
}

func lockMigrationsPostgres(t *testing.T) hindrance {
	dsn := Postgres(t)
	id, err := migratedb.GenerateAdvisoryLockId(databaseOf(t, dsn), "public", "schema_migrations")
	if err != nil {
		t.Fatal(err)
	}
	return inPostgres(t, dsn, `SELECT pg_advisory_lock(`+id+`)`)
}

func lockTablePostgres(t *testing.T) hindrance {
	dsn := Postgres(t)
	openDSN(t, dsn).Close()
	return inPostgres(t, dsn, `BEGIN; LOCK TABLE schema_migrations`)
}

// lockLogPostgres lets the migration itself wait.
func lockLogPostgres(t *testing.T) hindrance {
	dsn := Postgres(t)
	openDSN(t, dsn).Close()
	execPostgres(t, dsn, `UPDATE schema_migrations SET version = 5, dirty = true`)
	return inPostgres(t, dsn, `BEGIN; LOCK TABLE log`)
}

func inMySQL(t *testing.T, dsn, statement string) hindrance {
	db, err := dbserver.OpenMySQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err == nil {
		_, err = conn.ExecContext(context.Background(), statement)
	}
	if err != nil {
		t.Fatal(err)
	}
	release := func() {
		_ = conn.Raw(func(c any) error { return c.(interface{ Close() error }).Close() })
		conn.Close()
		db.Close()
	}
	t.Cleanup(func() { db.Close() })
	return hindrance{dsn, release}
}

func lockMigrationsMySQL(t *testing.T) hindrance {
	dsn := MariaDB(t)
	id, err := migratedb.GenerateAdvisoryLockId(databaseOf(t, dsn) + ":schema_migrations")
	if err != nil {
		t.Fatal(err)
	}
	return inMySQL(t, dsn, `SELECT GET_LOCK('`+id+`', 10)`)
}

func lockTableMySQL(t *testing.T, table string) hindrance {
	dsn := MariaDB(t)
	openDSN(t, dsn).Close()
	execMySQL(t, dsn, `UPDATE schema_migrations SET version = 5, dirty = true`)
	return inMySQL(t, dsn, `LOCK TABLES `+table+` WRITE`)
}

func databaseOf(t *testing.T, dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's DSN cannot be parsed")
	}
	return u.Path[1:]
}
