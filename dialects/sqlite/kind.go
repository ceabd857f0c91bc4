package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// claim notes what the log is used for if nobody has before, and refuses another use. The
// database is this process's own.
func claim(ctx context.Context, db *sql.DB, kind changelog.Kind) error {
	var found changelog.Kind
	err := db.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'kind'`).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		_, err := db.ExecContext(ctx, `INSERT INTO meta (name, value) VALUES ('kind', ?)`, string(kind))
		return err
	}
	if err != nil {
		return err
	}
	return refused.Kind(found, kind)
}

// kindOf reads what a log is used for. One that was made before there were kinds holds objects.
func kindOf(ctx context.Context, db *sql.DB) (kind changelog.Kind, err error) {
	err = db.QueryRowContext(ctx, `SELECT coalesce((SELECT value FROM meta WHERE name = 'kind'), 'api')`).Scan(&kind)
	return kind, err
}
