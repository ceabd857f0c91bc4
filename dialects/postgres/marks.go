package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Marks returns the log's marks, which are rows of meta with names of their own.
func (l filling) Marks(ctx context.Context) (map[string]string, error) {
	rows, err := l.pool.Query(ctx, `SELECT substr(name, 6), value FROM meta WHERE name LIKE 'mark/%'`)
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", l.classify(err))
	}
	marks := map[string]string{}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		marks[name] = value
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", l.classify(err))
	}
	return marks, nil
}

// SetMarks writes marks and removes those with an empty value.
func (l filling) SetMarks(ctx context.Context, marks map[string]string) error {
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error { return setMarks(ctx, tx, marks) })
	if err != nil {
		return fmt.Errorf("write marks: %w", l.classify(err))
	}
	return nil
}

func setMarks(ctx context.Context, tx pgx.Tx, marks map[string]string) error {
	for name, value := range marks {
		query := `INSERT INTO meta (name, value) VALUES ('mark/' || $1::text, $2) ON CONFLICT (name) DO UPDATE SET value = $2`
		if value == "" {
			query = `DELETE FROM meta WHERE name = 'mark/' || $1::text AND $2::text = ''`
		}
		if _, err := tx.Exec(ctx, query, name, value); err != nil {
			return err
		}
	}
	return nil
}
