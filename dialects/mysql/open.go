// Package mysql keeps the log in a MySQL or MariaDB database. A commit is two packets of
// several statements each, so two round trips, and that of a lone change one.
package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Options of a log. Config is needed.
type Options struct {
	Config   *mysql.Config
	Hosts    []string     // HOST:PORT of the servers that have the database; empty: Config.Addr alone
	MaxConns int          // at least 2; 8
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
	db        *sql.DB
	clusterID string
	kind      changelog.Kind
	made      bool
	freezer   driver.Connector                  // opens connections that read for long
	peeks     bool                              // it only reads
	packet    int                               // bytes the server takes in one packet
	durable   atomic.Int64                      // the rows up to this id are known to be on the disk
	witness   atomic.Pointer[changelog.Witness] // nil: nothing is expected
	foreign   atomic.Int32                      // above 0: others write, too

	hosts         []string     // HOST:PORT of the servers that have the database
	host          atomic.Int32 // which of them is in use
	epoch         atomic.Int64 // connections of an earlier one are not used any more
	galera        atomic.Bool  // the server is a node of a Galera cluster
	turns         turns
	manyPrimaries atomic.Bool // the server is one of a group of which each takes writes

	closeOnce sync.Once
	closed    chan struct{}
}

// Open connects and brings the schema up to date. It changes the configuration to what
// the statements here need.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.MaxConns <= 0 {
		o.MaxConns = 8
	}
	l := &database{kind: cmp.Or(o.Kind, changelog.KindAPI), hosts: o.Hosts, closed: make(chan struct{})}
	if o.Wait <= 0 {
		o.Wait = refused.AnswerTimeout
	}
	if err := l.open(ctx, o); err != nil {
		err = l.explain(ctx, err, o.Config) // before Close, after which every error is ErrClosed
		l.Close()
		return nil, err
	}
	return newLog(l), nil
}

// explain turns the error of open into one for the caller of Open.
func (l *database) explain(ctx context.Context, err error, config *mysql.Config) error {
	if no := l.denied(ctx, err, config); no != nil {
		return no
	}
	if no := refusal(err, config); no != nil {
		return no
	}
	return refused.Explain("open mysql database", err, l.classify)
}

func (l *database) open(ctx context.Context, o Options) error {
	config := o.Config.Clone()
	config.MultiStatements = true   // several statements in one packet
	config.InterpolateParams = true // and no round trip to prepare them
	config.MaxAllowedPacket = 0     // the server's
	config.ParseTime = false
	config.Logger = &mysql.NopLogger{}
	if o.Log != nil {
		config.Logger = driverLog{o.Log}
	}
	sessions, err := newSessions(l, config)
	if err != nil {
		return err
	}
	l.freezer = sessions
	l.db = sql.OpenDB(l.freezer)
	l.db.SetMaxOpenConns(max(o.MaxConns, 2))
	l.db.SetMaxIdleConns(max(o.MaxConns, 2))
	l.db.SetConnMaxIdleTime(30 * time.Second)
	if err := l.migrate(ctx, config, o); err != nil {
		return err
	}
	l.tellServer(o.Log)
	return refused.Answer(ctx, o.Wait, func(ctx context.Context) error {
		if err := l.checkTables(ctx); err != nil {
			return err
		}
		if err := l.claim(ctx); err != nil {
			return err
		}
		return l.db.QueryRowContext(ctx, `
			SELECT (SELECT value FROM meta WHERE name = 'cluster_id'), @@max_allowed_packet`).Scan(&l.clusterID, &l.packet)
	})
}

// tellServer logs what kind of server was met.
func (l *database) tellServer(log *slog.Logger) {
	switch {
	case log == nil:
	case l.galera.Load():
		log.Info("MariaDB is a Galera cluster: plinths may write at any of its nodes")
	case l.manyPrimaries.Load():
		log.Warn("MySQL is a group of several primaries, at which plinth is not safe: let all plinths connect to the same server, or use group replication in single-primary mode")
	}
}

// driverLog logs what the driver reports: a broken connection, which the pool then replaces.
type driverLog struct{ log *slog.Logger }

func (l driverLog) Print(v ...any) {
	l.log.Debug("MySQL driver reported a problem with a connection", "err", fmt.Sprint(v...))
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
	if err = l.db.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'cluster_id'`).Scan(&id); err != nil {
		return "", fmt.Errorf("read the cluster: %w", l.classify(err))
	}
	return id, nil
}

// Made says that Open has made the log.
func (l *database) Made() bool { return l.made }

// Reclaim leaves the work to InnoDB's purge.
func (l compaction) Reclaim(context.Context) error { return nil }

// Close closes all connections.
func (l *database) Close() error {
	var err error
	l.closeOnce.Do(func() {
		close(l.closed)
		if l.db != nil {
			err = l.db.Close()
		}
	})
	return err
}
