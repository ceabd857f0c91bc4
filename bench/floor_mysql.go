package bench

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/dialects"
)

// mysqlFloor commits with the one round trip of a statement outside a transaction.
type mysqlFloor struct {
	db   *sql.DB
	conn *sql.Conn
}

func openMySQLFloor(ctx context.Context, dsn string) (floor, error) {
	config, err := dialects.MySQLConfig(dsn, dialects.Options{})
	if err != nil {
		return nil, err
	}
	// As the dialect does: no round trip to prepare a statement.
	config.InterpolateParams = true
	config.MaxAllowedPacket = 0
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	f := &mysqlFloor{db: sql.OpenDB(connector)}
	if f.conn, err = f.db.Conn(ctx); err != nil {
		f.db.Close()
		return nil, err
	}
	return f, nil
}

func (f *mysqlFloor) insert(ctx context.Context, rows []row) error {
	now := time.Now().UnixMilli()
	args := make([]any, 0, 5*len(rows))
	for _, r := range rows {
		args = append(args, r.id, []byte(r.key), r.id, now, r.value)
	}
	_, err := f.conn.ExecContext(ctx,
		"INSERT INTO log (id, `key`, create_id, deleted, `at`, value) VALUES (?, ?, ?, 0, ?, ?)"+
			strings.Repeat(`, (?, ?, ?, 0, ?, ?)`, len(rows)-1), args...)
	return err
}

func (f *mysqlFloor) describe(ctx context.Context) (version, settings string, err error) {
	err = f.conn.QueryRowContext(ctx, `
		SELECT VERSION(), CONCAT('innodb_flush_log_at_trx_commit=', @@innodb_flush_log_at_trx_commit)`).Scan(&version, &settings)
	return version, settings, err
}

func (f *mysqlFloor) close(context.Context) error {
	f.conn.Close()
	return f.db.Close()
}
