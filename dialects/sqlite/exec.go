package sqlite

import (
	"database/sql/driver"
	"errors"
	"io"

	sqlite "github.com/mattn/go-sqlite3"
)

// The writer's statements that run too seldom to be kept prepared.

func (w *writer) exec(query string, args ...any) (changed int64, err error) {
	r, err := w.conn.Exec(query, values(args))
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// scan reads the one row of query, whose columns are all integers.
func (w *writer) scan(query string, args []any, into ...*int64) error {
	rows, err := w.conn.Query(query, values(args))
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]driver.Value, len(into))
	if err := rows.Next(row); err != nil {
		return err
	}
	for i := range into {
		*into[i] = row[i].(int64)
	}
	return nil
}

// each calls f with each row of query, whose columns are all integers. f must not keep the row.
func (w *writer) each(query string, args []any, f func(row []int64)) error {
	var numbers []int64
	return w.rowsOf(query, args, func(row []driver.Value) {
		numbers = numbers[:0]
		for _, v := range row {
			numbers = append(numbers, v.(int64))
		}
		f(numbers)
	})
}

// rowsOf calls f with each row of query. f must not keep the row.
func (w *writer) rowsOf(query string, args []any, f func(row []driver.Value)) error {
	rows, err := w.conn.Query(query, values(args))
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		f(row)
	}
}

// drain runs a pragma that works row by row to its end.
func (w *writer) drain(query string) error {
	rows, err := w.conn.Query(query, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(row); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// values turns ints into what the driver takes.
func values(args []any) []driver.Value {
	out := make([]driver.Value, len(args))
	for i, a := range args {
		if n, ok := a.(int); ok {
			a = int64(n)
		}
		out[i] = a
	}
	return out
}

func isCode(err error, code sqlite.ErrNo) bool {
	var e sqlite.Error
	return errors.As(err, &e) && e.Code == code
}
