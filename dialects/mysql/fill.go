package mysql

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// filler is the transaction that fills a log.
type filler struct {
	l  *database
	tx *txn
}

// Fill lets fill write to the log if it is empty.
func (l filling) Fill(ctx context.Context, fill func(changelog.Filler) error) error {
	err := l.transact(ctx, func(tx *txn) error {
		var newest int64
		floor, err := tx.lock(ctx)
		if err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT COALESCE((SELECT MAX(id) FROM log), 0)`).Scan(&newest); err != nil {
			return err
		}
		if max(floor, newest) > 0 {
			return changelog.ErrNotEmpty
		}
		return fill(&filler{l.database, tx})
	})
	if err != nil {
		return fmt.Errorf("fill the log: %w", l.classify(err))
	}
	return nil
}

// Add adds authors.
func (f *filler) Add(ctx context.Context, authors []changelog.Author) ([]int64, error) {
	return addAuthors(ctx, f.tx, authors)
}

// Insert adds rows, in as few packets as the server's limit allows. Quoting may double a value's size.
func (f *filler) Insert(ctx context.Context, rows []changelog.Row) error {
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

// InsertOld adds old versions, one by one in a prepared statement: there are fewer of them than rows
// where that takes long.
func (f *filler) InsertOld(ctx context.Context, rows []changelog.OldRow) error {
	insert, err := f.tx.PrepareContext(ctx, "INSERT INTO past (id, `key`, create_id, deleted, `at`, value, author, audit_id, until_id, until_at, expires)"+`
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for i := range rows {
		r := &rows[i]
		args := append(insertArgs([]changelog.Row{r.Row}), r.UntilID, r.UntilAt, r.Expires)
		if _, err := insert.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// End notes floor, what is kept, and marks.
func (f *filler) End(ctx context.Context, e changelog.Ending) error {
	for prefix, lost := range e.Kept {
		if _, err := f.tx.ExecContext(ctx, `INSERT INTO kept (prefix, lost) VALUES (?, ?)`, prefix, lost); err != nil {
			return err
		}
	}
	for name, number := range map[string]int64{changelog.MetaFloor: e.Floor, changelog.MetaSwept: e.Swept} {
		if _, err := f.tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = ?`, number, name); err != nil {
			return err
		}
	}
	if err := forgetPastData(ctx, f.tx); err != nil {
		return err
	}
	return setMarks(ctx, f.tx, e.Marks)
}
