package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// refusal returns an error that says what to change in the DSN, if err, which came while
// the log was opened, will not pass by itself; else nil. When the log is open the same
// answers mean that the database is away: an administrator is working on it.
func refusal(err error, config *pgx.ConnConfig) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		if strings.Contains(err.Error(), "server refused TLS connection") { // an error without a type
			return refused.NoTLS("sslmode")
		}
		return errors.Join(refused.Host(err), refused.TLS(err, "sslrootcert (sslcert and sslkey for your own certificate)"))
	}
	switch e.Code {
	case "28000":
		return refusedLogin(e.Message, config.User)
	case "28P01":
		return refused.User(config.User)
	case "3D000":
		return refused.Database(config.Database)
	}
	return nil
}

// refusedLogin tells the reasons of invalid_authorization_specification apart by the server's
// English text, which has no code of its own for each.
func refusedLogin(text, user string) error {
	switch {
	case strings.Contains(text, "no encryption"), strings.Contains(text, "SSL off"):
		return refused.NeedsTLS(user, "sslmode=verify-full")
	case strings.Contains(text, "client certificate"):
		return refused.NeedsCertificate(user, "sslcert and sslkey")
	}
	return refused.User(user)
}

// connectError is pgx's error without its repetitions: it tries a host again without
// TLS, and then says twice that the connection was refused.
type connectError struct {
	text string
	err  error
}

func (e *connectError) Error() string { return e.text }
func (e *connectError) Unwrap() error { return e.err }

func shorten(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return err
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return &connectError{strings.Join(lines, " "), err}
}

func unknown(err error) error { return fmt.Errorf("%w: %w", changelog.ErrUnknown, err) }

// classify wraps errors that mean that the database cannot be used now.
func (l *database) classify(err error) error {
	if err == nil || errors.Is(err, changelog.ErrCompacted) || errors.Is(err, changelog.ErrUnavailable) {
		return err
	}
	l.distrust(err)
	if errors.Is(err, changelog.ErrUnknown) {
		return err
	}
	select {
	case <-l.closed:
		return fmt.Errorf("%w: %w", changelog.ErrClosed, err)
	default:
	}
	if unavailable(err) {
		return fmt.Errorf("%w: %w", changelog.ErrUnavailable, shorten(err))
	}
	if corrupt(err) && !errors.Is(err, changelog.ErrDamaged) {
		return fmt.Errorf("%w: %w", changelog.ErrDamaged, err)
	}
	return err
}

// corrupt says that the server has found something on its disk to be damaged.
func corrupt(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "XX001" || e.Code == "XX002" || e.Code == "58P01") // data_corrupted, index_corrupted, undefined_file
}

// distrust replaces all pooled connections when one was found broken: after a restart of
// the server the others are broken, too, and each would fail a caller. It does the same if the server has become
// read-only, as one that was the primary; and if it is silent and there are other hosts, of which one may be
// the primary by now.
func (l *database) distrust(err error) {
	var connect *pgconn.ConnectError
	var e *pgconn.PgError
	switch {
	case l.pool == nil, errors.Is(err, context.Canceled), errors.As(err, &connect):
	case errors.Is(err, context.DeadlineExceeded):
		if l.hosts != nil {
			l.pool.Reset()
		}
	case errors.As(err, &e) && (strings.HasPrefix(e.Code, "57P") || e.Code == "25006"), e == nil && broken(err):
		l.pool.Reset()
	}
}

func unavailable(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return unavailableCode(e.Code)
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || broken(err) || errors.Is(err, migrations.ErrLocked) ||
		errors.Is(err, pgx.ErrNoRows) // a table is empty: it may be being restored
}

// unavailableCode says whether a SQLSTATE is that of a server that is away, full or read-only.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func unavailableCode(code string) bool {
	switch code {
	case "25006", // read_only_sql_transaction
		"57P01", "57P02", "57P03", "57P05", // shutdown, crash, cannot connect now, idle session
		"25P03", // idle in transaction
		"58030", // I/O error
		"55P03", // lock not available
		"3D000", // no such database: it may be being restored
		undefinedTable,
		"55000", // the database takes no connections, as while it is maintained
		"28P01", "28000":
		return true
	}
	// Connection exceptions and insufficient resources.
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "53")
}

// broken says that the connection is gone.
func broken(err error) bool {
	var netErr net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &netErr) || strings.Contains(err.Error(), "conn closed")
}

// retryable says that nothing was written and a new attempt may well succeed: the other
// side of a deadlock has gone on, or a pooled connection had broken while it was idle.
func retryable(err error) bool {
	if errors.Is(err, changelog.ErrUnknown) {
		return false
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch e.Code {
		case "40P01", "40001", "55P03", "25P03", "57P01":
			return true
		}
		return false
	}
	var connect *pgconn.ConnectError
	return !errors.As(err, &connect) && broken(err)
}
