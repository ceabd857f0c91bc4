package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Authors returns the newest authors.
func (l appender) Authors(ctx context.Context, limit int) (map[changelog.Author]int64, error) {
	authors, err := scan.Authors(l.reads.QueryContext(ctx, `
		SELECT id, who, impersonator, verb, subresource, manager FROM author ORDER BY id DESC LIMIT ?`, limit))
	if err != nil {
		return nil, fmt.Errorf("read authors: %w", classify(err))
	}
	return authors, nil
}

// AddAuthors adds authors.
func (l appender) AddAuthors(ctx context.Context, authors []changelog.Author) ([]int64, error) {
	var numbers []int64
	err := l.transact(ctx, func(w *writer) (err error) {
		w.wrote.rows = len(authors)
		if numbers, err = w.addAuthors(authors); err != nil {
			return err
		}
		return w.turn()
	})
	if err != nil {
		return nil, fmt.Errorf("add authors: %w", err)
	}
	return numbers, nil
}

func (w *writer) addAuthors(authors []changelog.Author) ([]int64, error) {
	numbers := make([]int64, len(authors))
	for i, a := range authors {
		_, err := w.exec(`INSERT INTO author (who, impersonator, verb, subresource, manager) VALUES (?, ?, ?, ?, ?)`,
			a.User, a.Impersonator, a.Verb, a.Subresource, a.Manager)
		if err == nil {
			err = w.scan(`SELECT last_insert_rowid()`, nil, &numbers[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// Origins returns where rows come from.
func (l reader) Origins(ctx context.Context, ids []int64) (map[int64]changelog.Origin, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", err)
	}
	origins, err := scan.Origins(l.reads.QueryContext(ctx, `
		SELECT l.id, l.audit_id, a.who, a.impersonator, a.verb, a.subresource, a.manager
		FROM json_each(?) AS n
		CROSS JOIN log AS l ON l.id = n.value
		LEFT JOIN author AS a ON a.id = l.author
		WHERE l.author IS NOT NULL OR l.audit_id IS NOT NULL`, string(list)))
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", classify(err))
	}
	return origins, nil
}
