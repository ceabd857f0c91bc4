package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/sqlstore"
)

// filler is the transaction that fills a log.
type filler struct{ tx pgx.Tx }

// Fill lets fill write to the log if it is empty.
func (l *Log) Fill(ctx context.Context, fill func(sqlstore.Filler) error) error {
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var floor, newest int64
		if err := tx.QueryRow(ctx, `SELECT value::bigint FROM meta WHERE name = 'floor' FOR UPDATE`).Scan(&floor); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT coalesce((SELECT max(id) FROM log), 0)`).Scan(&newest); err != nil {
			return err
		}
		if max(floor, newest) > 0 {
			return sqlstore.ErrNotEmpty
		}
		return fill(&filler{tx})
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

// Insert adds rows.
func (f *filler) Insert(ctx context.Context, rows []sqlstore.Row) error {
	columns := []string{"id", "key", "create_id", "deleted", "at", "value", "author", "audit_id"}
	_, err := f.tx.CopyFrom(ctx, pgx.Identifier{"log"}, columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		r := &rows[i]
		var author any // NULL
		if r.Author != 0 {
			author = r.Author
		}
		return []any{r.Revision, r.Key, r.CreateRevision, r.Deleted, r.At, append([]byte{}, r.Value...), author, r.AuditID}, nil
	}))
	return err
}

// End notes floor and marks.
func (f *filler) End(ctx context.Context, floor, swept int64, marks map[string]string) error {
	for name, number := range map[string]int64{sqlstore.MetaFloor: floor, sqlstore.MetaSwept: swept} {
		if _, err := f.tx.Exec(ctx, `UPDATE meta SET value = $1::bigint::text WHERE name = $2`, number, name); err != nil {
			return err
		}
	}
	return setMarks(ctx, f.tx, marks)
}
