package sqlite

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/scan"
)

// Marks returns the log's marks, which are rows of meta with names of their own.
func (l filling) Marks(ctx context.Context) (map[string]string, error) {
	marks, err := scan.Marks(l.reads.QueryContext(ctx, `SELECT substr(name, 6), value FROM meta WHERE name GLOB 'mark/*'`))
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", classify(err))
	}
	return marks, nil
}

// SetMarks writes marks and removes those with an empty value.
func (l filling) SetMarks(ctx context.Context, marks map[string]string) error {
	err := l.transact(ctx, func(w *writer) error {
		if err := w.setMarks(marks); err != nil {
			return err
		}
		return w.turn()
	})
	if err != nil {
		return fmt.Errorf("write marks: %w", err)
	}
	return nil
}

func (w *writer) setMarks(marks map[string]string) error {
	for name, value := range marks {
		query := `INSERT INTO meta (name, value) VALUES ('mark/' || ?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2`
		if value == "" {
			query = `DELETE FROM meta WHERE name = 'mark/' || ?1 AND ?2 = ''`
		}
		if _, err := w.exec(query, name, value); err != nil {
			return err
		}
	}
	return nil
}
