package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// part is one statement of a packet.
type part struct {
	sql    string
	args   []any
	silent bool // it has no result set
}

// answers are the result sets of several statements.
type answers struct {
	ctx   context.Context
	conn  *sql.Conn
	parts []part    // that are not sent yet
	rows  *sql.Rows // the result set that is read
}

// send sends statements in one packet. To a Galera cluster they are sent one after the other: a server whose
// cluster rolls a transaction back between two statements of a packet ends there, and sends neither
// an error nor what the client waits for (MariaDB 10.11).
func (l *database) send(ctx context.Context, conn *sql.Conn, parts ...part) (*answers, error) {
	if l.galera.Load() {
		return &answers{ctx: ctx, conn: conn, parts: parts}, nil
	}
	var text []string
	var args []any
	for _, p := range parts {
		text, args = append(text, p.sql), append(args, p.args...)
	}
	rows, err := conn.QueryContext(ctx, strings.Join(text, `; `), args...)
	if err != nil {
		return nil, err
	}
	return &answers{rows: rows}, nil
}

// next goes on to the next result set; first says that it is the first one.
func (a *answers) next(first bool) (*sql.Rows, error) {
	if a.conn == nil {
		if !first && !a.rows.NextResultSet() {
			return nil, missing(a.rows)
		}
		return a.rows, nil
	}
	if err := a.close(); err != nil {
		return nil, err
	}
	for len(a.parts) > 0 {
		p := a.parts[0]
		a.parts = a.parts[1:]
		if !p.silent {
			rows, err := a.conn.QueryContext(a.ctx, p.sql, p.args...)
			if err == nil {
				a.rows = rows
			}
			return rows, err
		}
		if _, err := a.conn.ExecContext(a.ctx, p.sql, p.args...); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("there are fewer statements than results")
}

// one reads the one row of the next result set.
func (a *answers) one(first bool, into ...any) error {
	rows, err := a.next(first)
	if err != nil {
		return err
	}
	return scanOne(rows, true, into...)
}

// close reads what is left of the result set. A transaction that is rolled back there fails after its rows.
func (a *answers) close() (err error) {
	if a.rows != nil {
		err = a.rows.Close()
		a.rows = nil
	}
	return err
}
