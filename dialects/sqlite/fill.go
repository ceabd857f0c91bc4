package sqlite

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore"
)

// filler is the writer within its transaction.
type filler struct {
	l *Log
	w *writer
}

// Fill lets fill write to the log if it is empty.
func (l *Log) Fill(ctx context.Context, fill func(sqlstore.Filler) error) error {
	err := l.transact(ctx, func(w *writer) error {
		var head sqlstore.Head
		var at int64
		if err := w.findHead(&head, &at); err != nil {
			return err
		}
		if head.Revision > 0 {
			return sqlstore.ErrNotEmpty
		}
		if err := fill(&filler{l, w}); err != nil {
			return err
		}
		return w.turn()
	})
	if err != nil {
		return fmt.Errorf("fill the log: %w", l.notice(err))
	}
	return nil
}

// Add adds authors.
func (f *filler) Add(_ context.Context, authors []sqlstore.Author) ([]int64, error) {
	return f.w.addAuthors(authors)
}

// Insert adds rows. The disk is asked for room for each call's, because there is no other moment to.
func (f *filler) Insert(ctx context.Context, rows []sqlstore.Row) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.w.wrote = loadOfRows(rows)
	if err := f.l.checkRoomForRows(f.w); err != nil {
		return err
	}
	for i := range rows {
		if rows[i].Value == nil {
			rows[i].Value = []byte{}
		}
		if err := f.w.insertRow(&rows[i]); err != nil {
			return err
		}
		f.w.drawn = rows[i].Revision
	}
	return nil
}

// End notes floor and marks.
func (f *filler) End(_ context.Context, floor, swept int64, marks map[string]string) error {
	for name, number := range map[string]int64{sqlstore.MetaFloor: floor, sqlstore.MetaSwept: swept} {
		if _, err := f.w.exec(`UPDATE meta SET value = CAST(? AS TEXT) WHERE name = ?`, number, name); err != nil {
			return err
		}
	}
	return f.w.setMarks(marks)
}
