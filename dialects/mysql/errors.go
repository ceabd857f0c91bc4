package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Error numbers. https://mariadb.com/kb/en/mariadb-error-codes/
const (
	notReady    = 1047
	noSuchTable = 1146
	lockTimeout = 1205
	deadlock    = 1213
)

// refusal returns an error that says what to change in the DSN, if err, which came while
// the log was opened, will not pass by itself; else nil. When the log is open the same
// answers mean that the database is away: an administrator is working on it.
func refusal(err error, config *mysql.Config) error {
	switch code(err) {
	case 1045, 1698:
		return refused.User(config.User)
	case 1049:
		return refused.Database(config.DBName)
	case 3159:
		return refused.NeedsTLS(config.User, "tls=true")
	}
	if errors.Is(err, mysql.ErrNoTLS) {
		return refused.NoTLS("tls")
	}
	return errors.Join(refused.Host(err), refused.TLS(err, "tls_ca (tls_cert and tls_key for your own certificate)"))
}

func unknown(err error) error { return fmt.Errorf("%w: %w", changelog.ErrUnknown, err) }

// code returns the server's error number, 0 if err is not the server's.
func code(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// beforeCommit judges an error of a statement that COMMIT follows in the same packet. If
// the server reports the error, it did not go on to COMMIT. If the connection broke, the
// outcome is unknown.
func beforeCommit(err error) error {
	if code(err) != 0 && !ending(code(err)) {
		return err
	}
	return unknown(err)
}

// ending says whether a server sends this number when it ends a connection, whatever
// statement it was running.
func ending(number uint16) bool {
	switch number {
	case 1053, 1077, 1079, 1317, 1927, 3169, 4031:
		return true
	}
	return false
}

// classify wraps errors that mean that the database cannot be used now.
func (l *database) classify(err error) error {
	if err == nil || errors.Is(err, changelog.ErrUnknown) || errors.Is(err, changelog.ErrCompacted) || errors.Is(err, changelog.ErrUnavailable) {
		return err
	}
	select {
	case <-l.closed:
		return fmt.Errorf("%w: %w", changelog.ErrClosed, err)
	default:
	}
	if unavailable(err) {
		l.distrust(err)
		return fmt.Errorf("%w: %w", changelog.ErrUnavailable, err)
	}
	if corrupt(err) && !errors.Is(err, changelog.ErrDamaged) {
		return fmt.Errorf("%w: %w", changelog.ErrDamaged, err)
	}
	return err
}

// corrupt says that the server has found a table to be damaged.
func corrupt(err error) bool {
	switch code(err) {
	case 126, 127, 134, 144, 145, // of a file
		1034, 1035, 1194, 1195, 1712, 1877, 1932: // of an index, of a table; there is none in the engine
		return true
	}
	return false
}

func unavailable(err error) bool {
	switch n := code(err); n {
	case 0:
		return !errors.Is(err, context.Canceled) && (broken(err) || errors.Is(err, migrations.ErrLocked) ||
			errors.Is(err, sql.ErrNoRows)) // a table is empty: it may be being restored
	case 1040, 1203, 1226, // too many connections
		1044, 1045, 1049, 1129, 1130, // not let in, no such database
		noSuchTable,                   // it may be being restored
		1021, 1114, 1030, 1026, 3, 28, // disk full, table full, storage engine and write errors
		lockTimeout, deadlock, notReady:
		return true
	default:
		return ending(n) || readOnly(n)
	}
}

func readOnly(number uint16) bool { return number == 1290 || number == 1792 || number == 1836 }

// broken says that the connection is gone or could not be made.
func broken(err error) bool {
	var netErr net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &netErr)
}

// distrust says that the server takes no statements any more, or no writes. If another host may do so,
// or the server may be back later, connections to it are not used any more.
func (l *database) distrust(err error) bool {
	n := code(err)
	if n != notReady && !(readOnly(n) && len(l.hosts) > 1) {
		return false
	}
	l.epoch.Add(1)
	return true
}

// retryable says that nothing was written and a new attempt may well succeed: the other
// side of a deadlock has gone on, or a pooled connection had broken while it was idle.
func (l *database) retryable(err error) bool {
	if errors.Is(err, changelog.ErrUnknown) {
		return false
	}
	if l.distrust(err) && len(l.hosts) > 1 {
		return true
	}
	switch n := code(err); n {
	case lockTimeout, deadlock:
		return true
	case 0:
		var dial *net.OpError
		return broken(err) && !(errors.As(err, &dial) && dial.Op == "dial")
	default:
		return ending(n)
	}
}
