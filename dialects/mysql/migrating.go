package mysql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/plinth-io/plinth/migrations"
)

// The library's lock on migrations is one of the server's, which the other nodes of a Galera cluster do not
// know. Two nodes that make the same view at once wait for each other for ever (MariaDB 10.11). So there, a row
// says who migrates.

// migratingFor is when a process that has not ended its migrations is taken for dead.
const migratingFor = 2 * time.Minute

// lockMigrations waits until no other process migrates. unlock must be called.
func (l *database) lockMigrations(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	_, err = l.db.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS migrating (
			id    TINYINT NOT NULL PRIMARY KEY,
			owner BIGINT  NOT NULL,
			until BIGINT  NOT NULL
		) ENGINE = InnoDB`)
	if err != nil {
		return nil, err
	}
	owner := rand.Int64()
	for end := time.Now().Add(wait); ; time.Sleep(100 * time.Millisecond) {
		holder, err := l.tryMigrations(ctx, owner)
		switch {
		case err != nil:
			return nil, err
		case holder == owner:
			return func() { l.unlockMigrations(ctx, owner) }, nil
		case time.Now().After(end):
			return nil, fmt.Errorf("migrate schema: %w", migrations.ErrLocked)
		}
	}
}

// tryMigrations returns who migrates: owner, unless somebody does already.
func (l *database) tryMigrations(ctx context.Context, owner int64) (holder int64, err error) {
	err = l.again(ctx, func() error {
		_, err := l.db.ExecContext(ctx, `
			INSERT INTO migrating (id, owner, until) VALUES (1, ?, UNIX_TIMESTAMP() + ?)
			ON DUPLICATE KEY UPDATE owner = IF(until < UNIX_TIMESTAMP(), VALUES(owner), owner),
			                        until = IF(until < UNIX_TIMESTAMP(), VALUES(until), until)`,
			owner, int64(migratingFor.Seconds()))
		return err
	})
	if err == nil {
		err = l.db.QueryRowContext(ctx, `SELECT COALESCE((SELECT owner FROM migrating WHERE id = 1), 0)`).Scan(&holder)
	}
	return holder, err
}

func (l *database) unlockMigrations(ctx context.Context, owner int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	_ = l.again(ctx, func() error {
		_, err := l.db.ExecContext(ctx, `DELETE FROM migrating WHERE owner = ?`, owner)
		return err
	})
}
