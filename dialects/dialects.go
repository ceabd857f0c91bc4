// Package dialects opens the log that a data source name (DSN) points at.
package dialects

import (
	"context"
	"errors"
	"strings"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/dialects/mysql"
	"github.com/plinth-io/plinth/dialects/postgres"
	"github.com/plinth-io/plinth/dialects/sqlite"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options are what a DSN does not say.
type Options struct {
	// Logf reports what an operator should know, such as a lost connection; nil: nothing.
	Logf func(format string, args ...any)
	// Getenv looks up PLINTH_DB_PASSWORD and PLINTH_DB_PASSWORD_FILE; os.Getenv.
	Getenv func(name string) string
}

// ErrDSN is what errors of Open are when the server answered and waiting does not help:
// wrong user or password, no such database or host. They say what to write instead.
var ErrDSN = refused.Err

// Open opens the log at dsn and brings its schema up to date:
//
//	sqlite://path                                a file, made if it is missing
//	sqlite://:memory:                            gone when the log is closed; each Open has its own
//	postgres://user:password@host:5432/database  (or postgresql://)
//	mysql://user:password@host:3306/database     (or mariadb://)
//
// with these parameters after a question mark:
//
//	maxconns=N          the most connections it opens: 4 readers for SQLite, else 8
//	durability=full     SQLite: what a commit survives: full, normal, off
//	password_file=PATH  Postgres, MySQL: where the password is
//	sslmode, sslrootcert, … as libpq has them; connect_timeout, application_name,
//	search_path, default_query_exec_mode and the like as pgx has them (Postgres)
//	tls=true|preferred|skip-verify|false, tls_ca=PATH, timeout, readTimeout,
//	writeTimeout, socket=PATH (MySQL)
//
// A password that is in neither the DSN nor its password_file is taken from the
// environment: PLINTH_DB_PASSWORD, or the file that PLINTH_DB_PASSWORD_FILE names.
//
// Errors are one line and never contain a password.
func Open(ctx context.Context, dsn string, o Options) (sqlstore.Log, error) {
	t, err := parse(dsn, o)
	if err != nil {
		return nil, err
	}
	log, err := t.open(ctx)
	if err != nil {
		return nil, redact(err, t.secrets)
	}
	return log, nil
}

// Check says what is wrong with dsn without connecting.
func Check(dsn string, o Options) error {
	_, err := parse(dsn, o)
	return err
}

// target is a parsed DSN.
type target struct {
	open    func(context.Context) (sqlstore.Log, error)
	secrets []string // what no error may show
}

var errScheme = errors.New("DSN is of no known kind; write sqlite://path, postgres://user:password@host:5432/database or mysql://user:password@host:3306/database")

func parse(dsn string, o Options) (target, error) {
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok {
		return target{}, errScheme
	}
	switch strings.ToLower(scheme) {
	case "sqlite":
		so, err := parseSQLite(rest)
		return target{open: func(ctx context.Context) (sqlstore.Log, error) { return opened(sqlite.Open(ctx, so)) }}, err
	case "postgres", "postgresql":
		po, secrets, err := parsePostgres(rest, o)
		return target{func(ctx context.Context) (sqlstore.Log, error) { return opened(postgres.Open(ctx, po)) }, secrets}, err
	case "mysql", "mariadb":
		mo, secrets, err := parseMySQL(rest, o)
		return target{func(ctx context.Context) (sqlstore.Log, error) { return opened(mysql.Open(ctx, mo)) }, secrets}, err
	}
	return target{}, errScheme
}

// opened keeps a nil pointer from becoming an interface that is not nil.
func opened[L sqlstore.Log](log L, err error) (sqlstore.Log, error) {
	if err != nil {
		return nil, err
	}
	return log, nil
}
