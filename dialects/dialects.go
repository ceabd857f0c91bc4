// Package dialects opens the log that a data source name (DSN) points at. It owns the form
// of DSNs and hides the passwords in them; all SQL is in the packages below, one for each
// dialect. It knows nothing of Kubernetes.
package dialects

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/dialects/mysql"
	"github.com/plinth-io/plinth/dialects/postgres"
	"github.com/plinth-io/plinth/dialects/sqlite"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Options are what a DSN does not say.
type Options struct {
	// Log gets what an operator should know, such as a lost connection; nil: nothing.
	Log *slog.Logger
	// Getenv looks up PLINTH_DB_PASSWORD and PLINTH_DB_PASSWORD_FILE; os.Getenv.
	Getenv func(name string) string
	// MustExist makes Open fail where there is no log yet, with an error that wraps
	// changelog.ErrNoLog. Nothing is made then, neither file nor directory nor table.
	MustExist bool
	// Beside opens a SQLite file that another process serves beside that one: to read it, and to stop
	// it by Move. Servers let anybody do so.
	Beside bool
	// Wait bounds how long a server that takes connections may be silent while the log is
	// opened, and how long another session may hold a lock that a migration needs; 15
	// seconds. A migration itself takes as long as it takes.
	Wait time.Duration
	// Kind is what the log is opened for; changelog.KindAPI. The first Open of a log decides;
	// later ones with another kind fail with an error that wraps changelog.ErrKind and ErrDSN.
	Kind changelog.Kind
}

// ErrDSN is wrapped by errors of Open after which waiting does not help, because the server
// has answered: wrong user or password, no such database or host. Their text says what to
// write instead.
var ErrDSN = refused.Err

// Open opens the log at dsn and brings its schema up to date. It ends soon after ctx does,
// whatever it waits for. The DSN:
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
//	reserve=16MiB       SQLite: space kept for deletes when the disk is full; 0: none
//	password_file=PATH  Postgres, MySQL: where the password is
//	sslmode, sslrootcert, … as libpq has them; connect_timeout, application_name,
//	search_path, default_query_exec_mode and the like as pgx has them (Postgres)
//	tls=true|preferred|skip-verify|false, tls_ca=PATH, tls_cert=PATH, tls_key=PATH,
//	timeout, readTimeout, writeTimeout, socket=PATH (MySQL)
//
// A password that is in neither the DSN nor its password_file is taken from the
// environment: PLINTH_DB_PASSWORD, or the file that PLINTH_DB_PASSWORD_FILE names.
//
// Errors are one line and never contain a password.
func Open(ctx context.Context, dsn string, o Options) (changelog.Log, error) {
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

// Inspect reads the summary of the log at dsn without becoming one of its users: it makes
// and changes nothing, and takes no lock that would be in the way of others. Where there is no
// log, the error wraps changelog.ErrNoLog.
func Inspect(ctx context.Context, dsn string, o Options) (changelog.Summary, error) {
	t, err := parse(dsn, o)
	if err != nil {
		return changelog.Summary{}, err
	}
	s, err := t.inspect(ctx)
	if err != nil {
		return s, redact(err, t.secrets)
	}
	return s, nil
}

// Peek opens the log at dsn for reading alone. Like Inspect it makes and changes nothing, and does not
// become one of the log's users, so that it works beside a plinth that serves a SQLite file. A schema
// that is not this program's is refused.
func Peek(ctx context.Context, dsn string, o Options) (changelog.Source, error) {
	t, err := parse(dsn, o)
	if err != nil {
		return nil, err
	}
	log, err := t.peek(ctx)
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
	open    func(context.Context) (changelog.Log, error)
	inspect func(context.Context) (changelog.Summary, error)
	peek    func(context.Context) (changelog.Source, error)
	secrets []string // what no error may show
}

func parse(dsn string, o Options) (target, error) {
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok {
		return target{}, noScheme(dsn)
	}
	switch Scheme(dsn) {
	case "sqlite":
		so, err := parseSQLite(rest)
		so.Log = o.Log
		so.MustExist, so.Kind, so.Beside = o.MustExist, o.Kind, o.Beside
		return target{
			open:    func(ctx context.Context) (changelog.Log, error) { return opened(sqlite.Open(ctx, so)) },
			inspect: func(ctx context.Context) (changelog.Summary, error) { return sqlite.Inspect(ctx, so) },
			peek:    func(ctx context.Context) (changelog.Source, error) { return peeked(sqlite.Peek(ctx, so)) },
		}, err
	case "postgres":
		po, secrets, err := parsePostgres(rest, o)
		return target{
			open:    func(ctx context.Context) (changelog.Log, error) { return opened(postgres.Open(ctx, po)) },
			inspect: func(ctx context.Context) (changelog.Summary, error) { return postgres.Inspect(ctx, po) },
			peek:    func(ctx context.Context) (changelog.Source, error) { return peeked(postgres.Peek(ctx, po)) },
			secrets: secrets,
		}, err
	case "mysql":
		mo, secrets, err := parseMySQL(rest, o)
		return target{
			open:    func(ctx context.Context) (changelog.Log, error) { return opened(mysql.Open(ctx, mo)) },
			inspect: func(ctx context.Context) (changelog.Summary, error) { return mysql.Inspect(ctx, mo) },
			peek:    func(ctx context.Context) (changelog.Source, error) { return peeked(mysql.Peek(ctx, mo)) },
			secrets: secrets,
		}, err
	}
	return target{}, unknownScheme(scheme)
}

// opened keeps a nil pointer from becoming an interface that is not nil.
func opened[L changelog.Log](log L, err error) (changelog.Log, error) {
	if err != nil {
		return nil, err
	}
	return log, nil
}

// peeked does the same for a log that only reads.
func peeked[L changelog.Log](log L, err error) (changelog.Source, error) {
	if err != nil {
		return nil, err
	}
	return log, nil
}
