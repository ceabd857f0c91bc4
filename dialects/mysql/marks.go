package mysql

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
)

// Marks returns the log's marks, which are rows of meta with names of their own.
func (l filling) Marks(ctx context.Context) (map[string]string, error) {
	marks, err := scan.Marks(l.db.QueryContext(ctx, `SELECT SUBSTRING(name, 6), value FROM meta WHERE name LIKE 'mark/%'`))
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", l.classify(err))
	}
	return marks, nil
}

// SetMarks writes marks and removes those with an empty value.
func (l filling) SetMarks(ctx context.Context, marks map[string]string) error {
	err := l.again(ctx, func() error {
		return l.transact(ctx, func(tx *txn) error { return setMarks(ctx, tx, marks) })
	})
	if err != nil {
		return fmt.Errorf("write marks: %w", l.classify(err))
	}
	return nil
}

func setMarks(ctx context.Context, tx *txn, marks map[string]string) error {
	for name, value := range marks {
		query := `REPLACE INTO meta (name, value) VALUES (CONCAT('mark/', ?), ?)`
		if value == "" {
			query = `DELETE FROM meta WHERE name = CONCAT('mark/', ?) AND ? = ''`
		}
		if _, err := tx.ExecContext(ctx, query, name, value); err != nil {
			return err
		}
	}
	return nil
}
