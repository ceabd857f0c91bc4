package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	migrator "github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"
)

// migration is a driver of the migrations' library that does everything between Lock and Unlock in one
// transaction. The library's own driver takes the lock for a session: behind a transaction pooler two
// programs may have the same session, and nobody gives the lock back. The lock's number is the same,
// so that programs with the other driver wait. Its methods take no context: the caller cuts the connection.
type migration struct {
	conn   *pgx.Conn
	schema schema
	wait   time.Duration // for a lock
}

// Lock begins the transaction and makes the table of versions if there is none.
func (m *migration) Lock() error {
	id, err := migrator.GenerateAdvisoryLockId(m.schema.database, m.schema.name, "schema_migrations")
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := m.conn.Exec(ctx, `BEGIN`); err != nil {
		return err
	}
	if _, err := m.conn.Exec(ctx, `SELECT set_config('lock_timeout', $1, true)`, fmt.Sprintf("%dms", m.wait.Milliseconds())); err != nil {
		return err
	}
	if _, err := m.conn.Exec(ctx, `SELECT pg_advisory_xact_lock($1::text::bigint)`, id); err != nil {
		return err
	}
	_, err = m.conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`)
	return err
}

// Unlock commits. After an error the server rolls back instead, and nothing has happened.
func (m *migration) Unlock() error {
	_, err := m.conn.Exec(context.Background(), `COMMIT`)
	return err
}

// Run runs the statements of one migration.
func (m *migration) Run(statements io.Reader) error {
	text, err := io.ReadAll(statements)
	if err != nil {
		return err
	}
	_, err = m.conn.Exec(context.Background(), string(text))
	return err
}

// SetVersion notes which version the schema has.
func (m *migration) SetVersion(version int, dirty bool) error {
	ctx := context.Background()
	if _, err := m.conn.Exec(ctx, `DELETE FROM schema_migrations`); err != nil || version < 0 {
		return err
	}
	_, err := m.conn.Exec(ctx, `INSERT INTO schema_migrations (version, dirty) VALUES ($1, $2)`, version, dirty)
	return err
}

// Version returns what SetVersion noted.
func (m *migration) Version() (version int, dirty bool, err error) {
	err = m.conn.QueryRow(context.Background(), `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty)
	if errors.Is(err, pgx.ErrNoRows) || isCode(err, undefinedTable) {
		return migrator.NilVersion, false, nil
	}
	return version, dirty, err
}

// Open is for those who have only a URL.
func (m *migration) Open(string) (migrator.Driver, error) { return nil, errors.ErrUnsupported }

// Drop would delete the log.
func (m *migration) Drop() error { return errors.ErrUnsupported }

// Close leaves the connection to the caller.
func (m *migration) Close() error { return nil }
