package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/dialects/internal/refused"
)

// connectTimeout bounds how long a new connection takes to its first statement. The
// driver's own bound is for the network alone, and the pool opens some connections without
// a caller whose context would end them. It is hostTimeout as long as there is another host to try.
const (
	connectTimeout = 10 * time.Second
	hostTimeout    = 2 * time.Second
)

// sessions connects to one of the hosts of a database, and makes every new connection independent of the
// server's defaults. All connections that are used go to the same host: where servers replicate, another one
// may be behind. When that host is gone, read-only, or has lost its cluster, the next one takes over.
type sessions struct {
	l     *database
	hosts []driver.Connector
}

// newSessions returns sessions at each of the hosts, or at the address of the configuration if there are none.
func newSessions(l *database, config *mysql.Config) (*sessions, error) {
	s := &sessions{l: l}
	hosts := l.hosts
	if len(hosts) == 0 {
		hosts = []string{config.Addr}
	}
	for _, host := range hosts {
		one := config.Clone()
		one.Addr = host
		connector, err := mysql.NewConnector(one)
		if err != nil {
			return nil, err
		}
		s.hosts = append(s.hosts, connector)
	}
	return s, nil
}

func (s *sessions) Driver() driver.Driver { return s.hosts[0].Driver() }

// Connect tries the host in use, and then the others in their order. One that is read-only serves if no
// other takes writes.
func (s *sessions) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var reader *conn
	var errs []error
	first, epoch := s.l.host.Load(), s.l.epoch.Load()
	for i := range s.hosts {
		n := (int(first) + i) % len(s.hosts)
		c, err := s.connectTo(ctx, n, i == len(s.hosts)-1)
		switch {
		case err != nil:
			errs = append(errs, err)
		case c.readOnly && len(s.hosts) > 1:
			if reader == nil {
				reader = c
			} else {
				c.Close()
			}
		default:
			if reader != nil {
				reader.Close()
			}
			return s.use(ctx, c, first, epoch)
		}
	}
	if reader != nil {
		return s.use(ctx, reader, first, epoch)
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, noHost(errs)
}

// use makes the host of a connection the one in use, unless another was found meanwhile. The connections
// to the one before are not used any more.
func (s *sessions) use(ctx context.Context, c *conn, before int32, epoch int64) (driver.Conn, error) {
	if c.host != before && s.l.host.CompareAndSwap(before, c.host) {
		epoch = s.l.epoch.Add(1)
	}
	if c.host != s.l.host.Load() {
		c.Close()
		return s.Connect(ctx)
	}
	c.epoch = epoch
	return c, nil
}

// connectTo connects to one host.
func (s *sessions) connectTo(ctx context.Context, n int, last bool) (*conn, error) {
	if !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, hostTimeout)
		defer cancel()
	}
	inner, err := s.hosts[n].Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{serverConn: inner.(serverConn), l: s.l, host: int32(n)}
	if err := c.setUp(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// noHost joins the errors of several hosts.
func noHost(errs []error) error {
	err := errs[0]
	for _, next := range errs[1:] {
		err = fmt.Errorf("%w; %w", err, next)
	}
	return err
}

// serverConn is what the driver's connections can do.
type serverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn is a connection that the pool gives up when connections of its time are not to be used any more.
type conn struct {
	serverConn
	l        *database
	host     int32
	epoch    int64
	readOnly bool // its server was when it was made
}

func (c *conn) IsValid() bool { return c.epoch == c.l.epoch.Load() && c.serverConn.IsValid() }

func (c *conn) ResetSession(ctx context.Context) error {
	if !c.IsValid() {
		return driver.ErrBadConn
	}
	return c.serverConn.ResetSession(ctx)
}

// setUp makes the session. Idle ones are closed by the pool after 30 s; that the server does it after 60 s
// frees the locks of a replica that lost its network. MySQL 8 would tell sizes of tables that are up to a day
// old; MariaDB does not, has no such setting, and takes the condition for a comment.
func (c *conn) setUp(ctx context.Context) error {
	is, err := c.show(ctx, `SHOW VARIABLES WHERE variable_name IN ('version', 'wsrep_on', 'read_only', 'group_replication_single_primary_mode')`)
	if err != nil {
		return err
	}
	if err := refused.Product(is["version"]); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, `
		SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
		SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO',
		            SESSION autocommit = 1,
		            SESSION innodb_lock_wait_timeout = 10,
		            SESSION wait_timeout = 60
		            /*!80003 , SESSION information_schema_stats_expiry = 0 */`, nil)
	if err != nil {
		return err
	}
	c.readOnly = is["read_only"] != "OFF"
	c.l.manyPrimaries.Store(is["group_replication_single_primary_mode"] == "OFF")
	if is["wsrep_on"] != "ON" {
		return nil
	}
	return c.setUpGalera(ctx)
}

// setUpGalera makes the session one of a Galera cluster, if the node is in it.
func (c *conn) setUpGalera(ctx context.Context) error {
	_, err := c.ExecContext(ctx, `SET SESSION wsrep_sync_wait = 1, SESSION wsrep_dirty_reads = OFF`, nil)
	if err != nil {
		return err
	}
	is, err := c.show(ctx, `SHOW GLOBAL STATUS LIKE 'wsrep_ready'`)
	if err != nil {
		return err
	}
	if is["wsrep_ready"] != "ON" {
		return &mysql.MySQLError{Number: notReady, Message: "the node is not in its cluster, or has not caught up yet"}
	}
	c.l.galera.Store(true)
	return nil
}

// show returns names and values.
func (c *conn) show(ctx context.Context, query string) (map[string]string, error) {
	rows, err := c.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	is := map[string]string{}
	for {
		row := make([]driver.Value, 2)
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return is, nil
		} else if err != nil {
			return nil, err
		}
		is[fmt.Sprintf("%s", row[0])] = fmt.Sprintf("%s", row[1])
	}
}
