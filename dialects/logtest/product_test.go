package logtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
)

// Databases that only speak the protocol of another one are refused by their names, in one line, and nothing is made
// in them. Their versions are told by a Postgres and a MariaDB here.
func TestProductRefused(t *testing.T) {
	refusedAs := func(t *testing.T, dsn, product string) {
		t.Helper()
		_, err := dialects.Open(t.Context(), dsn, dialects.Options{})
		if !errors.Is(err, dialects.ErrDSN) || !strings.HasPrefix(err.Error(), "the database is "+product) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
	}
	t.Run("CockroachDB", func(t *testing.T) {
		t.Parallel()
		dsn := Postgres(t)
		execPostgres(t, dsn, `CREATE FUNCTION public.version() RETURNS text LANGUAGE sql AS $$ SELECT 'CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu)' $$`)
		refusedAs(t, dsn+"&search_path=public,pg_catalog", "CockroachDB")
		execPostgres(t, dsn, `DO $$ BEGIN IF to_regclass('log') IS NOT NULL OR to_regclass('schema_migrations') IS NOT NULL THEN RAISE 'tables were made'; END IF; END $$`)
	})
	t.Run("TiDB", func(t *testing.T) {
		t.Parallel()
		s := StartMariaDB(t)
		dsn := CreateDatabase(t, s)
		if err := s.Use("--version=8.0.11-TiDB-v8.5.1"); err != nil {
			t.Fatal(err)
		}
		refusedAs(t, dsn, "TiDB")
		execMySQL(t, dsn, "CREATE TABLE schema_migrations (id int)") // which fails if there is one
	})
}
