package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Authors returns the newest authors.
func (l appender) Authors(ctx context.Context, limit int) (map[changelog.Author]int64, error) {
	rows, err := l.pool.Query(ctx, `
		SELECT id, who, impersonator, verb, subresource, manager FROM author ORDER BY id DESC LIMIT $1::bigint`, limit)
	if err != nil {
		return nil, fmt.Errorf("read authors: %w", l.classify(err))
	}
	authors := make(map[changelog.Author]int64)
	var id int64
	var a changelog.Author
	_, err = pgx.ForEachRow(rows, []any{&id, &a.User, &a.Impersonator, &a.Verb, &a.Subresource, &a.Manager}, func() error {
		authors[a] = id
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read authors: %w", l.classify(err))
	}
	return authors, nil
}

// AddAuthors adds authors.
func (l appender) AddAuthors(ctx context.Context, authors []changelog.Author) ([]int64, error) {
	var numbers []int64
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) (err error) {
		numbers, err = addAuthors(ctx, tx, authors)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("add authors: %w", l.classify(err))
	}
	return numbers, nil
}

func addAuthors(ctx context.Context, tx pgx.Tx, authors []changelog.Author) ([]int64, error) {
	numbers := make([]int64, len(authors))
	var b pgx.Batch
	for i, a := range authors {
		b.Queue(`INSERT INTO author (who, impersonator, verb, subresource, manager) VALUES ($1, $2, $3, $4, $5) RETURNING id`,
			a.User, a.Impersonator, a.Verb, a.Subresource, a.Manager).QueryRow(func(row pgx.Row) error { return row.Scan(&numbers[i]) })
	}
	return numbers, tx.SendBatch(ctx, &b).Close()
}

// Origins returns where rows come from.
func (l reader) Origins(ctx context.Context, ids []int64) (map[int64]changelog.Origin, error) {
	rows, err := l.pool.Query(ctx, `
		SELECT l.id, l.audit_id, coalesce(a.who, ''), coalesce(a.impersonator, ''), coalesce(a.verb, ''),
		       coalesce(a.subresource, ''), coalesce(a.manager, '')
		FROM log AS l
		LEFT JOIN author AS a ON a.id = l.author
		WHERE l.id = ANY ($1::bigint[]) AND (l.author IS NOT NULL OR l.audit_id IS NOT NULL)`, ids)
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", l.classify(err))
	}
	origins := make(map[int64]changelog.Origin)
	var id int64
	var audit []byte
	var o changelog.Origin
	into := []any{&id, &audit, &o.User, &o.Impersonator, &o.Verb, &o.Subresource, &o.Manager}
	_, err = pgx.ForEachRow(rows, into, func() error {
		o.AuditID = changelog.AuditText(audit)
		origins[id] = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", l.classify(err))
	}
	return origins, nil
}
