package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore"
)

// filler is the transaction that fills a log.
type filler struct {
	l  *Log
	tx *sql.Tx
}

// Fill lets fill write to the log if it is empty.
func (l *Log) Fill(ctx context.Context, fill func(sqlstore.Filler) error) error {
	err := l.transact(ctx, func(tx *sql.Tx) error {
		var floor, newest int64
		if err := tx.QueryRowContext(ctx, `SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor' FOR UPDATE`).Scan(&floor); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT COALESCE((SELECT MAX(id) FROM log), 0)`).Scan(&newest); err != nil {
			return err
		}
		if max(floor, newest) > 0 {
			return sqlstore.ErrNotEmpty
		}
		return fill(&filler{l, tx})
	})
	if err != nil {
		return fmt.Errorf("fill the log: %w", l.classify(err))
	}
	return nil
}

// Add adds authors.
func (f *filler) Add(ctx context.Context, authors []sqlstore.Author) ([]int64, error) {
	return addAuthors(ctx, f.tx, authors)
}

// Insert adds rows, in as few packets as the server's limit allows. Quoting may double a value's size.
func (f *filler) Insert(ctx context.Context, rows []sqlstore.Row) error {
	for len(rows) > 0 {
		n, size := 0, 0
		for n < min(len(rows), mostInserted) {
			size += 2*(len(rows[n].Value)+len(rows[n].Key)) + 300
			if n > 0 && size > f.l.packet-1000 {
				break
			}
			n++
		}
		if _, err := f.tx.ExecContext(ctx, insertSQL(n), insertArgs(rows[:n])...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// mostInserted is how many rows a statement inserts: each has eight arguments.
const mostInserted = 1000

// End notes floor and marks.
func (f *filler) End(ctx context.Context, floor, swept int64, marks map[string]string) error {
	for name, number := range map[string]int64{sqlstore.MetaFloor: floor, sqlstore.MetaSwept: swept} {
		if _, err := f.tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = ?`, number, name); err != nil {
			return err
		}
	}
	return setMarks(ctx, f.tx, marks)
}
