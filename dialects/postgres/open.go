// Package postgres keeps the log in a Postgres database, with pgx's own interface: a
// commit is two pipelines, each one round trip.
package postgres

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Options of a log. Config is needed.
type Options struct {
	Config   *pgx.ConnConfig
	MaxConns int          // of the pool, at least 2; 8. Follow has one more
	Log      *slog.Logger // nil: nothing

	// MustExist makes Open fail with changelog.ErrNoLog where there is no log, and make none.
	MustExist bool
	// Wait bounds how long the server may be silent while the log is opened, and how long
	// another session may hold a lock that is needed for it; 15 seconds.
	Wait time.Duration
	// Kind is what the log is opened for; changelog.KindAPI.
	Kind changelog.Kind
}

// database is the server's database, with the connections to it: the role of that name, and what the
// methods of the other roles work with. What changes after Open returns is atomic.
type database struct {
	pool      *pgxpool.Pool
	config    *pgx.ConnConfig // of all connections
	hosts     *hosts          // nil: there is one
	log       *slog.Logger
	clusterID string
	kind      changelog.Kind
	made      bool
	witness   atomic.Pointer[changelog.Witness] // nil: nothing is expected

	closeOnce sync.Once
	closed    chan struct{}
}

// connectTimeout bounds how long the server may take to accept a connection, unless the DSN
// says otherwise. The pool opens some without a caller whose context would end them.
const connectTimeout = 10 * time.Second

// giveUpGrace is how long closing a connection may take when an Open has failed.
const giveUpGrace = 500 * time.Millisecond

// Open connects and brings the schema up to date.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.MaxConns <= 0 {
		o.MaxConns = 8
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &database{config: o.Config, log: o.Log, kind: cmp.Or(o.Kind, changelog.KindAPI), closed: make(chan struct{})}
	if o.Wait <= 0 {
		o.Wait = refused.AnswerTimeout
	}
	if err := l.open(ctx, o); err != nil {
		err = l.explain(ctx, err, o.Config) // before giving up, after which every error is ErrClosed
		l.giveUp()
		return nil, err
	}
	return newLog(l), nil
}

// explain turns the error of open into one for the caller of Open.
func (l *database) explain(ctx context.Context, err error, config *pgx.ConnConfig) error {
	if no := l.denied(ctx, err); no != nil {
		return no
	}
	if no := refusal(err, config); no != nil {
		return no
	}
	return refused.Explain("open postgres database", err, l.classify)
}

// giveUp closes the log without waiting for a server that hangs: the pool asks it for
// seconds to end a statement.
func (l *database) giveUp() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.Close()
	}()
	select {
	case <-closed:
	case <-time.After(giveUpGrace):
	}
}

func (l *database) open(ctx context.Context, o Options) (err error) {
	if l.config.ConnectTimeout <= 0 {
		l.config = l.config.Copy()
		l.config.ConnectTimeout = connectTimeout
	}
	l.hosts = newHosts(l.config)
	if err := l.usePooler(ctx, o.Wait); err != nil {
		return err
	}
	// The pool wants a configuration made by its own parser.
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	config.ConnConfig = l.config.Copy()
	config.MaxConns = int32(max(o.MaxConns, 2))
	config.MinConns = 1
	config.MaxConnIdleTime = 5 * time.Minute
	config.BeforeConnect = l.hosts.choose
	if l.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	if err := l.migrate(ctx, o); err != nil {
		return err
	}
	return refused.Answer(ctx, o.Wait, func(ctx context.Context) error {
		if err := l.checkTables(ctx); err != nil {
			return err
		}
		if err := l.claim(ctx); err != nil {
			return err
		}
		l.clusterID, err = l.Cluster(ctx)
		return err
	})
}

// connect opens a connection beside the pool.
func (l *database) connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	if err := l.hosts.choose(ctx, config); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// Expect makes later statements compare the log with w.
func (l appender) Expect(w *changelog.Witness) { l.witness.Store(w) }

// Exclusive is false: other replicas may append.
func (l *database) Exclusive() bool { return false }

// Condition is always good: only the server knows.
func (l *database) Condition() error { return nil }

// Room is not known: the database is the server's.
func (l *database) Room() (free, size int64) { return -1, -1 }

// Kind is what the log is used for.
func (l source) Kind() changelog.Kind { return l.kind }

// ClusterID names this log.
func (l source) ClusterID() string { return l.clusterID }

// Cluster reads whose log it is.
func (l *database) Cluster(ctx context.Context) (id string, err error) {
	if err = l.pool.QueryRow(ctx, `SELECT value FROM meta WHERE name = 'cluster_id'`).Scan(&id); err != nil {
		return "", fmt.Errorf("read the cluster: %w", l.classify(err))
	}
	return id, nil
}

// Made says that Open has made the log.
func (l *database) Made() bool { return l.made }

// Reclaim leaves the work to autovacuum.
func (l compaction) Reclaim(context.Context) error { return nil }

// Close waits for queries in progress.
func (l *database) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		if l.hosts != nil {
			l.hosts.stop()
		}
		if l.pool != nil {
			l.pool.Close()
		}
	})
	return nil
}
