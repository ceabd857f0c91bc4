package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// filler is the transaction that fills a log.
type filler struct{ tx pgx.Tx }

// Fill lets fill write to the log if it is empty.
func (l filling) Fill(ctx context.Context, fill func(changelog.Filler) error) error {
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var floor, newest int64
		if err := tx.QueryRow(ctx, `SELECT value::bigint FROM meta WHERE name = 'floor' FOR UPDATE`).Scan(&floor); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT coalesce((SELECT max(id) FROM log), 0)`).Scan(&newest); err != nil {
			return err
		}
		if max(floor, newest) > 0 {
			return changelog.ErrNotEmpty
		}
		return fill(&filler{tx})
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

// Insert adds rows.
func (f *filler) Insert(ctx context.Context, rows []changelog.Row) error {
	_, err := f.tx.CopyFrom(ctx, pgx.Identifier{"log"}, filledColumns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		return filled(&rows[i]), nil
	}))
	return err
}

var filledColumns = []string{"id", "key", "create_id", "deleted", "at", "value", "author", "audit_id"}

// filled returns what filledColumns get of a row.
func filled(r *changelog.Row) []any {
	var author any // NULL
	if r.Author != 0 {
		author = r.Author
	}
	return []any{r.Revision, r.Key, r.CreateRevision, r.Deleted, r.At, append([]byte{}, r.Value...), author, r.AuditID}
}

// InsertOld adds old versions.
func (f *filler) InsertOld(ctx context.Context, rows []changelog.OldRow) error {
	columns := append(slices.Clone(filledColumns), "until_id", "until_at", "expires")
	_, err := f.tx.CopyFrom(ctx, pgx.Identifier{"past"}, columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		r := &rows[i]
		return append(filled(&r.Row), r.UntilID, r.UntilAt, r.Expires), nil
	}))
	return err
}

// End notes floor, what is kept, and marks.
func (f *filler) End(ctx context.Context, e changelog.Ending) error {
	for prefix, lost := range e.Kept {
		if _, err := f.tx.Exec(ctx, `INSERT INTO kept (prefix, lost) VALUES ($1, $2)`, prefix, lost); err != nil {
			return err
		}
	}
	for name, number := range map[string]int64{changelog.MetaFloor: e.Floor, changelog.MetaSwept: e.Swept} {
		if _, err := f.tx.Exec(ctx, `UPDATE meta SET value = $1::bigint::text WHERE name = $2`, number, name); err != nil {
			return err
		}
	}
	if err := forgetPastData(ctx, f.tx); err != nil {
		return err
	}
	return setMarks(ctx, f.tx, e.Marks)
}
