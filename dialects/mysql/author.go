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

// Origins returns where rows come from.
func (l reader) Origins(ctx context.Context, ids []int64) (map[int64]changelog.Origin, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	origins, err := scan.Origins(l.db.QueryContext(ctx, `
		SELECT STRAIGHT_JOIN l.id, l.audit_id, a.who, a.impersonator, a.verb, a.subresource, a.manager
		FROM log AS l FORCE INDEX (PRIMARY)
		LEFT JOIN author AS a ON a.id = l.author
		WHERE l.id IN `+places(len(ids))+` AND (l.author IS NOT NULL OR l.audit_id IS NOT NULL)`, idArgs(ids)...))
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", l.classify(err))
	}
	return origins, nil
}
