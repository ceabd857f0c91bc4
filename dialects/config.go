package dialects

import (
	"strings"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/sqlite"
)

// Scheme returns the dialect that dsn is for: sqlite, postgres, mysql, or nothing.
func Scheme(dsn string) string {
	scheme, _, _ := strings.Cut(dsn, "://")
	switch scheme = strings.ToLower(scheme); scheme {
	case "postgresql":
		return "postgres"
	case "mariadb":
		return "mysql"
	case "sqlite", "postgres", "mysql":
		return scheme
	}
	return ""
}

// The following are for programs that talk to the database itself, beside the log. The
// configurations hold the password.

// SQLiteOptions returns the options in a DSN of a SQLite database.
func SQLiteOptions(dsn string) (sqlite.Options, error) {
	_, rest, _ := strings.Cut(dsn, "://")
	return parseSQLite(rest)
}

// PostgresConfig returns what the driver connects with.
func PostgresConfig(dsn string, o Options) (*pgx.ConnConfig, error) {
	_, rest, _ := strings.Cut(dsn, "://")
	po, _, err := parsePostgres(rest, o)
	return po.Config, err
}

// MySQLConfig returns what the driver connects with.
func MySQLConfig(dsn string, o Options) (*driver.Config, error) {
	_, rest, _ := strings.Cut(dsn, "://")
	mo, _, err := parseMySQL(rest, o)
	return mo.Config, err
}
