package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// claim notes what the log is used for if nobody has before, and refuses another use. Of two
// processes that claim it at once, the second waits for the first and reads what that wrote.
func (l *database) claim(ctx context.Context) error {
	found, err := l.readKind(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = l.pool.Exec(ctx, `INSERT INTO meta (name, value) VALUES ('kind', $1) ON CONFLICT DO NOTHING`, string(l.kind))
		if err == nil {
			found, err = l.readKind(ctx)
		}
	}
	if err != nil {
		return err
	}
	return refused.Kind(found, l.kind)
}

func (l *database) readKind(ctx context.Context) (found changelog.Kind, err error) {
	err = l.pool.QueryRow(ctx, `SELECT value FROM meta WHERE name = 'kind'`).Scan(&found)
	return found, err
}
