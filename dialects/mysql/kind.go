package mysql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// claim notes what the log is used for if nobody has before, and refuses another use. Of two
// processes that claim it at once, the second waits for the first and reads what that wrote.
func (l *database) claim(ctx context.Context) error {
	found, err := l.readKind(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		err = l.again(ctx, func() error {
			_, err := l.db.ExecContext(ctx, `INSERT IGNORE INTO meta (name, value) VALUES ('kind', ?)`, string(l.kind))
			return err
		})
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
	err = l.db.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'kind'`).Scan(&found)
	return found, err
}
