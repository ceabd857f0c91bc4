package mysql

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Authors returns the newest authors.
func (l appender) Authors(ctx context.Context, limit int) (map[changelog.Author]int64, error) {
	authors, err := scan.Authors(l.db.QueryContext(ctx, `
		SELECT id, who, impersonator, verb, subresource, manager FROM author ORDER BY id DESC LIMIT ?`, limit))
	if err != nil {
		return nil, fmt.Errorf("read authors: %w", l.classify(err))
	}
	return authors, nil
}

// AddAuthors adds authors.
func (l appender) AddAuthors(ctx context.Context, authors []changelog.Author) ([]int64, error) {
	var numbers []int64
	err := l.again(ctx, func() error {
		return l.transact(ctx, func(tx *txn) (err error) {
			numbers, err = addAuthors(ctx, tx, authors)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("add authors: %w", l.classify(err))
	}
	return numbers, nil
}

func addAuthors(ctx context.Context, tx *txn, authors []changelog.Author) ([]int64, error) {
	numbers := make([]int64, len(authors))
	for i, a := range authors {
		r, err := tx.ExecContext(ctx, `INSERT INTO author (who, impersonator, verb, subresource, manager) VALUES (?, ?, ?, ?, ?)`,
			[]byte(a.User), []byte(a.Impersonator), []byte(a.Verb), []byte(a.Subresource), []byte(a.Manager))
		if err == nil {
			numbers[i], err = r.LastInsertId()
		}
		if err != nil {
			return nil, err
		}
	}
	return numbers, nil
}
