// Package postgres keeps the log in a Postgres database, with pgx's own interface: a
// commit is two pipelines, each one round trip.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options of a log. Config is needed.
type Options struct {
	Config   *pgx.ConnConfig
	MaxConns int // of the pool, at least 2; 8. Follow has one more
	Logf     func(format string, args ...any)
}

// Log is a sqlstore.Log.
type Log struct {
	pool      *pgxpool.Pool
	config    *pgx.ConnConfig // for the connection that listens
	logf      func(format string, args ...any)
	clusterID string

	closeOnce sync.Once
	closed    chan struct{}
}

var _ sqlstore.Log = (*Log)(nil)

// connectTimeout bounds how long the server may take to let a connection in, unless the
// DSN says otherwise. Some are opened on nobody's behalf.
const connectTimeout = 10 * time.Second

// Open connects and brings the schema up to date.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.MaxConns <= 0 {
		o.MaxConns = 8
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	l := &Log{config: o.Config, logf: o.Logf, closed: make(chan struct{})}
	if err := l.open(ctx, o); err != nil {
		if no := refusal(err, o.Config); no != nil {
			l.Close()
			return nil, no
		}
		err = l.classify(err) // before Close, after which every error is ErrClosed
		l.Close()
		return nil, fmt.Errorf("open postgres database: %w", err)
	}
	return l, nil
}

func (l *Log) open(ctx context.Context, o Options) (err error) {
	// The pool wants a configuration made by its own parser.
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	config.ConnConfig = o.Config.Copy()
	if config.ConnConfig.ConnectTimeout <= 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
		l.config = config.ConnConfig
	}
	config.MaxConns = int32(max(o.MaxConns, 2))
	config.MinConns = 1
	config.MaxConnIdleTime = 5 * time.Minute
	if l.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	if err := l.migrate(ctx); err != nil {
		return err
	}
	return l.pool.QueryRow(ctx, `SELECT value FROM meta WHERE name = 'cluster_id'`).Scan(&l.clusterID)
}

// migrate looks at the version itself first: the library takes a session's lock even to
// look, which a transaction pooler cannot keep apart.
func (l *Log) migrate(ctx context.Context) error {
	var version int
	var dirty bool
	err := l.pool.QueryRow(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty)
	if err == nil {
		if done, err := migrations.Check(migrations.Postgres, version, dirty); done || err != nil {
			return err
		}
	}
	var missing *pgconn.PgError
	if err != nil && !errors.Is(err, pgx.ErrNoRows) && !(errors.As(err, &missing) && missing.Code == "42P01") {
		return err
	}
	db := stdlib.OpenDBFromPool(l.pool)
	driver, err := pgxmigrate.WithInstance(db, &pgxmigrate.Config{})
	if err != nil {
		db.Close()
		return err
	}
	defer driver.Close()
	return migrations.Up(migrations.Postgres, driver)
}

// Exclusive is false: other replicas may append.
func (l *Log) Exclusive() bool { return false }

// ClusterID names this log.
func (l *Log) ClusterID() string { return l.clusterID }

// Reclaim leaves the work to autovacuum.
func (l *Log) Reclaim(context.Context) error { return nil }

// Close waits for queries in progress.
func (l *Log) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		if l.pool != nil {
			l.pool.Close()
		}
	})
	return nil
}
