// Package mysql keeps the log in a MySQL or MariaDB database. A commit is two packets of
// several statements each, so two round trips.
package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	mysqlmigrate "github.com/golang-migrate/migrate/v4/database/mysql"

	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options of a log. Config is needed.
type Options struct {
	Config   *mysql.Config
	MaxConns int // at least 2; 8
	Logf     func(format string, args ...any)
}

// Log is a sqlstore.Log.
type Log struct {
	db        *sql.DB
	clusterID string
	packet    int // bytes the server takes in one packet

	closeOnce sync.Once
	closed    chan struct{}
}

var _ sqlstore.Log = (*Log)(nil)

// Open connects and brings the schema up to date. It changes the configuration to what
// the statements here need.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.MaxConns <= 0 {
		o.MaxConns = 8
	}
	l := &Log{closed: make(chan struct{})}
	if err := l.open(ctx, o); err != nil {
		if no := refusal(err, o.Config); no != nil {
			l.Close()
			return nil, no
		}
		err = l.classify(err) // before Close, after which every error is ErrClosed
		l.Close()
		return nil, fmt.Errorf("open mysql database: %w", err)
	}
	return l, nil
}

func (l *Log) open(ctx context.Context, o Options) error {
	config := o.Config.Clone()
	config.MultiStatements = true   // several statements in one packet
	config.InterpolateParams = true // and no round trip to prepare them
	config.MaxAllowedPacket = 0     // the server's
	config.ParseTime = false
	if o.Logf != nil {
		config.Logger = logger(o.Logf)
	} else {
		config.Logger = &mysql.NopLogger{}
	}
	inner, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	l.db = sql.OpenDB(session{inner})
	l.db.SetMaxOpenConns(max(o.MaxConns, 2))
	l.db.SetMaxIdleConns(max(o.MaxConns, 2))
	l.db.SetConnMaxIdleTime(30 * time.Second)
	if err := l.migrate(ctx); err != nil {
		return err
	}
	return l.db.QueryRowContext(ctx, `
		SELECT (SELECT value FROM meta WHERE name = 'cluster_id'), @@max_allowed_packet`).Scan(&l.clusterID, &l.packet)
}

// session makes every new connection independent of the server's defaults. Idle ones are
// closed by the pool after 30 s; that the server does it after 60 s frees the locks of a
// replica that lost its network.
type session struct{ driver.Connector }

// connectTimeout bounds a connection's way to its first statement. The driver's own bound
// ends with the network's part of it, and the pool opens some on nobody's behalf.
const connectTimeout = 10 * time.Second

func (s session) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.(driver.ExecerContext).ExecContext(ctx, `
		SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
		SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO',
		            SESSION autocommit = 1,
		            SESSION innodb_lock_wait_timeout = 10,
		            SESSION wait_timeout = 60`, nil)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

type logger func(format string, args ...any)

func (f logger) Print(v ...any) { f("mysql: %s", fmt.Sprint(v...)) }

func (l *Log) migrate(ctx context.Context) error {
	var version int
	var dirty bool
	err := l.db.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty)
	if err == nil {
		if done, err := migrations.Check(migrations.MySQL, version, dirty); done || err != nil {
			return err
		}
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) && code(err) != noSuchTable {
		return err
	}
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	driver, err := mysqlmigrate.WithConnection(ctx, conn, &mysqlmigrate.Config{})
	if err != nil {
		return err
	}
	return migrations.Up(migrations.MySQL, driver)
}

// Exclusive is false: other replicas may append.
func (l *Log) Exclusive() bool { return false }

// ClusterID names this log.
func (l *Log) ClusterID() string { return l.clusterID }

// Reclaim leaves the work to InnoDB's purge.
func (l *Log) Reclaim(context.Context) error { return nil }

// Close closes all connections.
func (l *Log) Close() error {
	var err error
	l.closeOnce.Do(func() {
		close(l.closed)
		if l.db != nil {
			err = l.db.Close()
		}
	})
	return err
}
