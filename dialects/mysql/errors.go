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
	"github.com/plinth-io/plinth/sqlstore"
)

// Error numbers. https://mariadb.com/kb/en/mariadb-error-codes/
const (
	noSuchTable = 1146
	lockTimeout = 1205
	deadlock    = 1213
)

// refusal returns what to tell whoever wrote the DSN if err, met while opening the log,
// will not pass by itself, else nil. Later the same answers mean that the database is
// away: somebody is working on it.
func refusal(err error, config *mysql.Config) error {
	switch code(err) {
	case 1045, 1698:
		return refused.User(config.User)
	case 1044:
		return refused.Access(config.User, config.DBName)
	case 1049:
		return refused.Database(config.DBName)
	}
	return refused.Host(err)
}

func unknown(err error) error { return fmt.Errorf("%w: %w", sqlstore.ErrUnknown, err) }

// code returns the server's error number, 0 if err is not the server's.
func code(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// beforeCommit judges an error of a statement that COMMIT follows in the same packet. If
// the server reports it, it did not go on to COMMIT; if the connection broke, who knows.
func beforeCommit(err error) error {
	if code(err) != 0 && !ending(code(err)) {
		return err
	}
	return unknown(err)
}

// ending knows the numbers that a server sends while it ends a connection, whatever
// statement that was at.
func ending(number uint16) bool {
	switch number {
	case 1053, 1077, 1079, 1317, 1927, 3169, 4031:
		return true
	}
	return false
}

// classify says which errors mean that the database cannot be used now.
func (l *Log) classify(err error) error {
	if err == nil || errors.Is(err, sqlstore.ErrUnknown) || errors.Is(err, sqlstore.ErrCompacted) {
		return err
	}
	select {
	case <-l.closed:
		return fmt.Errorf("%w: %w", sqlstore.ErrClosed, err)
	default:
	}
	if unavailable(err) {
		return fmt.Errorf("%w: %w", sqlstore.ErrUnavailable, err)
	}
	return err
}

func unavailable(err error) bool {
	switch n := code(err); n {
	case 0:
		return !errors.Is(err, context.Canceled) && broken(err)
	case 1040, 1203, 1226, // too many connections
		1044, 1045, 1049, 1129, 1130, // not let in, no such database
		1021, 1114, 1030, 1026, 3, 28, // disk full, table full, storage engine and write errors
		1290, 1792, 1836, // read-only
		lockTimeout, deadlock:
		return true
	default:
		return ending(n)
	}
}

// broken says that the connection is gone or was not to be had.
func broken(err error) bool {
	var netErr net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &netErr)
}

// retryable says that nothing was written and a new attempt may well succeed: the other
// side of a deadlock has gone on, or a pooled connection had died in its sleep.
func retryable(err error) bool {
	if errors.Is(err, sqlstore.ErrUnknown) {
		return false
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
