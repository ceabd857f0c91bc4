package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
	mysqlmigrate "github.com/golang-migrate/migrate/v4/database/mysql"

	"github.com/plinth-io/plinth/dialects/internal/cut"
	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/migrations"
)

// migrate looks at the version itself first, so that a database that is up to date is
// opened without the lock on migrations.
func (l *database) migrate(ctx context.Context, config *mysql.Config, o Options) error {
	done, exists := false, false
	err := refused.Answer(ctx, o.Wait, func(ctx context.Context) (err error) {
		done, exists, err = l.lookAtVersion(ctx)
		return err
	})
	if done || err != nil {
		return err
	}
	if o.MustExist && !exists {
		return refused.Missing(fmt.Sprintf("database %q has no plinth tables", config.DBName))
	}
	if !l.galera.Load() {
		return l.up(ctx, config.Clone(), o.Wait)
	}
	unlock, err := l.lockMigrations(ctx, o.Wait)
	if err != nil {
		return err
	}
	defer unlock()
	if done, _, err := l.lookAtVersion(ctx); done || err != nil {
		return err // another process has done it meanwhile
	}
	return l.up(ctx, config.Clone(), o.Wait)
}

// lookAtVersion says whether the schema is up to date, and whether there is a log at all.
func (l *database) lookAtVersion(ctx context.Context) (done, exists bool, err error) {
	var version int
	var dirty bool
	err = l.db.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty)
	if errors.Is(err, sql.ErrNoRows) || code(err) == noSuchTable {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	done, err = migrations.Check(migrations.MySQL, version, dirty)
	return done, migrations.Exists(version, dirty), err
}

// up runs the migrations on a connection of its own. The library takes no context, and
// may still wait on the connection when it fails; so when ctx ends, and at the end, this
// one is cut.
func (l *database) up(ctx context.Context, config *mysql.Config, wait time.Duration) error {
	dialer := &cut.Dialer{Func: (&net.Dialer{}).DialContext}
	config.DialFunc = dialer.Dial
	sessions, err := newSessions(l, config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(sessions)
	defer db.Close()
	defer dialer.Cut()
	stop := context.AfterFunc(ctx, dialer.Cut)
	defer stop()
	err = l.runUp(ctx, db, dialer, wait)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("migrate schema: %w", ctx.Err())
	}
	return err
}

func (l *database) runUp(ctx context.Context, db *sql.DB, dialer *cut.Dialer, wait time.Duration) error {
	var conn *sql.Conn
	err := refused.Answer(ctx, wait, func(ctx context.Context) (err error) {
		if conn, err = db.Conn(ctx); err != nil {
			return err
		}
		// By default the server waits a day for tables that another session has locked.
		_, err = conn.ExecContext(ctx, `SET SESSION lock_wait_timeout = ?`, max(1, int(wait.Seconds())))
		return err
	})
	if conn != nil {
		// The pool closes idle connections alone, and the driver has a goroutine for each that is open.
		defer conn.Close()
		defer dialer.Cut()
	}
	if err != nil {
		return err
	}
	// The library waits ten seconds for the lock, whatever it is told.
	impatient := time.AfterFunc(wait, dialer.Cut)
	driver, err := mysqlmigrate.WithConnection(ctx, conn, &mysqlmigrate.Config{})
	if !impatient.Stop() {
		return fmt.Errorf("migrate schema: %w", migrations.ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("migrate schema: %w", migrations.Plain(err))
	}
	l.made, err = migrations.Up(migrations.MySQL, driver, wait)
	return err
}
