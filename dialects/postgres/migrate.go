package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/plinth-io/plinth/dialects/internal/cut"
	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/migrations"
)

// migrate looks at the version first, without the lock that orders migrations.
func (l *database) migrate(ctx context.Context, o Options) error {
	done, exists := false, false
	var home schema
	err := refused.Answer(ctx, o.Wait, func(ctx context.Context) (err error) {
		if err = l.checkProduct(ctx); err != nil {
			return err
		}
		if done, exists, err = l.lookAtVersion(ctx); done || err != nil {
			return err
		}
		home, err = l.findSchema(ctx)
		return err
	})
	if done || err != nil {
		return err
	}
	if o.MustExist && !exists {
		return refused.Missing(fmt.Sprintf("database %q has no plinth tables in schema %q", o.Config.Database, home.name))
	}
	if !home.create {
		return refused.Grant(home.user, fmt.Sprintf("create tables in schema %q of database %q", home.name, o.Config.Database), home.grant())
	}
	return l.up(ctx, home, o.Wait)
}

// checkProduct refuses a server that only speaks as Postgres does.
func (l *database) checkProduct(ctx context.Context) error {
	var version string
	if err := l.pool.QueryRow(ctx, `SELECT version()`).Scan(&version); err != nil {
		return err
	}
	return refused.Product(version)
}

// lookAtVersion says whether the schema is up to date, and whether there is a log at all.
func (l *database) lookAtVersion(ctx context.Context) (done, exists bool, err error) {
	var version int
	var dirty bool
	err = l.pool.QueryRow(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty)
	if errors.Is(err, pgx.ErrNoRows) || isCode(err, undefinedTable) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	done, err = migrations.Check(migrations.Postgres, version, dirty)
	return done, migrations.Exists(version, dirty), err
}

// up runs the migrations on a connection of its own. The library takes no context, so when ctx ends, and
// at the end, this one is cut.
func (l *database) up(ctx context.Context, home schema, wait time.Duration) error {
	config := l.config.Copy()
	dialer := &cut.Dialer{}
	defer dialer.Cut()
	var conn *pgx.Conn
	err := refused.Answer(ctx, wait, func(ctx context.Context) (err error) {
		if err = l.hosts.choose(ctx, config); err != nil {
			return err
		}
		dialer.Func, config.DialFunc = config.DialFunc, dialer.Dial
		conn, err = pgx.ConnectConfig(ctx, config)
		return err
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		cancelStatement(conn.PgConn())
		dialer.Cut()
	})
	defer stop()
	l.made, err = migrations.Up(migrations.Postgres, &migration{conn, home, wait}, wait)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("migrate schema: %w", ctx.Err())
	}
	return err
}

// cancelStatement cancels the statement that a session runs: closing the connection alone
// would leave the statement in the queue for a lock.
func cancelStatement(session *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), giveUpGrace)
	defer cancel()
	_ = session.CancelRequest(ctx)
}
