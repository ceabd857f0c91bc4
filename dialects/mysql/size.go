package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/dialects/internal/inspect"
	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// countable is how many bytes a table may have for its rows to be counted.
const countable = 64 << 20

// Size counts the rows of a table of less than 64 MiB. Of a larger one they are the server's
// estimate. All of these figures are some seconds late.
func (l source) Size(ctx context.Context) (s changelog.Size, err error) {
	past := int64(-1)
	log, err := l.sizeOf(ctx, "log", &s.Bytes, &s.Rows)
	if err == nil {
		past, err = l.sizeOf(ctx, "past", &s.PastBytes, &s.Past)
		if errors.Is(err, sql.ErrNoRows) {
			past, err = -1, nil
		}
	}
	if err == nil && log < countable {
		err = l.db.QueryRowContext(ctx, `SELECT count(*) FROM log`).Scan(&s.Rows)
	}
	if err == nil && past >= 0 && past < countable { // an older version has none, which Inspect may meet
		err = l.db.QueryRowContext(ctx, `SELECT count(*) FROM past`).Scan(&s.Past)
	}
	if err == nil {
		s.PastData, err = l.pastData(ctx)
	}
	s.Bytes += s.PastBytes
	s.Free = -1
	if err != nil {
		return s, fmt.Errorf("read size: %w", l.classify(err))
	}
	return s, nil
}

// sizeOf reads the size of a table without its indexes, that with them, and the number of rows. Both names are
// constants, so that the server looks at this table alone: with a join it opens all tables of all databases,
// which has made MariaDB 10.11 crash.
func (l source) sizeOf(ctx context.Context, table string, bytes, rows *int64) (data int64, err error) {
	err = l.db.QueryRowContext(ctx, `
		SELECT data_length, data_length + index_length, table_rows FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name = ?`, table).Scan(&data, bytes, rows)
	return data, err
}

// Inspect reads the summary of the log in a database as Peek opens it, of any schema.
func Inspect(ctx context.Context, o Options) (s changelog.Summary, err error) {
	l, err := peek(ctx, o)
	if err != nil {
		return s, err
	}
	return inspect.Summary(ctx, l, l.classify)
}

// Peek opens the log in a database for reading, without making or changing anything. There must be a
// log already, else the error wraps changelog.ErrNoLog.
func Peek(ctx context.Context, o Options) (*Log, error) {
	l, err := peek(ctx, o)
	if err != nil {
		return nil, err
	}
	row := l.db.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations`)
	return inspect.Readable(l, migrations.MySQL, row, l.classify)
}

func peek(ctx context.Context, o Options) (*Log, error) {
	config := o.Config.Clone()
	config.MultiStatements, config.InterpolateParams, config.ParseTime = true, true, false
	config.MaxAllowedPacket, config.Logger = 0, &mysql.NopLogger{}
	l := &database{hosts: o.Hosts, peeks: true, closed: make(chan struct{})}
	sessions, err := newSessions(l, config)
	if err != nil {
		return nil, err
	}
	l.db, l.freezer = sql.OpenDB(sessions), sessions
	l.db.SetMaxOpenConns(1)
	err = l.db.QueryRowContext(ctx, `
		SELECT value, COALESCE((SELECT value FROM meta WHERE name = 'kind'), 'api')
		FROM meta WHERE name = 'cluster_id'`).Scan(&l.clusterID, &l.kind)
	if err == nil {
		return newLog(l), nil
	}
	err = l.explainPeek(err, o)
	l.Close()
	return nil, err
}

func (l *database) explainPeek(err error, o Options) error {
	if code(err) == noSuchTable {
		return fmt.Errorf("%w: database %q has none of its tables", changelog.ErrNoLog, o.Config.DBName)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: table meta of database %q has no cluster id", changelog.ErrDamaged, o.Config.DBName)
	}
	if no := refusal(err, o.Config); no != nil {
		return no
	}
	return l.classify(err)
}
