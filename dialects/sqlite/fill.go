package sqlite

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// filler is the writer within its transaction.
type filler struct {
	l *database
	w *writer
}

// Fill lets fill write to the log if it is empty.
func (l filling) Fill(ctx context.Context, fill func(changelog.Filler) error) error {
	err := l.transact(ctx, func(w *writer) error {
		var head changelog.Head
		var at int64
		if err := w.findHead(&head, &at); err != nil {
			return err
		}
		if head.Revision > 0 {
			return changelog.ErrNotEmpty
		}
		if err := fill(&filler{l.database, w}); err != nil {
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
func (f *filler) Add(_ context.Context, authors []changelog.Author) ([]int64, error) {
	return f.w.addAuthors(authors)
}

// Insert adds rows. The disk is asked for room for each call's, because there is no other moment to.
func (f *filler) Insert(ctx context.Context, rows []changelog.Row) error {
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

// InsertOld adds old versions, for which it asks as Insert does.
func (f *filler) InsertOld(ctx context.Context, rows []changelog.OldRow) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	plain := make([]changelog.Row, len(rows))
	for i := range rows {
		plain[i] = rows[i].Row
	}
	f.w.wrote = loadOfRows(plain)
	if err := f.l.checkRoomForRows(f.w); err != nil {
		return err
	}
	for i := range rows {
		if err := f.w.insertOld(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) insertOld(r *changelog.OldRow) error {
	var author, audit any // NULL
	if r.Author != 0 {
		author = r.Author
	}
	if r.AuditID != nil {
		audit = r.AuditID
	}
	deleted := 0
	if r.Deleted {
		deleted = 1
	}
	_, err := w.exec(`
		INSERT INTO past (id, key, create_id, deleted, at, value, author, audit_id, until_id, until_at, expires)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.Revision, r.Key, r.CreateRevision, deleted, r.At, append([]byte{}, r.Value...), author, audit, r.UntilID, r.UntilAt, r.Expires)
	return err
}

// End notes floor, what is kept, and marks.
func (f *filler) End(_ context.Context, e changelog.Ending) error {
	for prefix, lost := range e.Kept {
		if _, err := f.w.exec(`INSERT INTO kept (prefix, lost) VALUES (?, ?)`, prefix, lost); err != nil {
			return err
		}
	}
	for name, number := range map[string]int64{changelog.MetaFloor: e.Floor, changelog.MetaSwept: e.Swept} {
		if _, err := f.w.exec(`UPDATE meta SET value = CAST(? AS TEXT) WHERE name = ?`, number, name); err != nil {
			return err
		}
	}
	if err := f.w.forgetPastData(); err != nil {
		return err
	}
	return f.w.setMarks(e.Marks)
}
