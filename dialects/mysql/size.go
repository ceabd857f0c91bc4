package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/sqlstore"
)

// countable is how many bytes a table may have for its rows to be counted.
const countable = 64 << 20

// Size counts the rows of a table of less than 64 MiB. Of a larger one they are the server's
// estimate. All of these figures are some seconds late.
func (l *Log) Size(ctx context.Context) (s sqlstore.Size, err error) {
	var log, past int64
	err = l.db.QueryRowContext(ctx, `
		SELECT l.data_length, l.data_length + l.index_length, l.table_rows,
		       COALESCE(p.data_length, -1), COALESCE(p.data_length + p.index_length, 0), COALESCE(p.table_rows, 0)
		FROM information_schema.tables AS l
		LEFT JOIN information_schema.tables AS p ON p.table_schema = l.table_schema AND p.table_name = 'past'
		WHERE l.table_schema = DATABASE() AND l.table_name = 'log'`).Scan(&log, &s.Bytes, &s.Rows, &past, &s.PastBytes, &s.Past)
	if err == nil && log < countable {
		err = l.db.QueryRowContext(ctx, `SELECT count(*) FROM log`).Scan(&s.Rows)
	}
	if err == nil && past >= 0 && past < countable { // an older version has none, which Inspect may meet
		err = l.db.QueryRowContext(ctx, `SELECT count(*) FROM past`).Scan(&s.Past)
	}
	s.Bytes += s.PastBytes
	s.Free = -1
	if err != nil {
		return s, fmt.Errorf("read size: %w", l.classify(err))
	}
	return s, nil
}

// Inspect reads the summary of the log in a database without making or changing anything.
// There must be a log already, else the error wraps sqlstore.ErrNoLog.
func Inspect(ctx context.Context, o Options) (s sqlstore.Summary, err error) {
	config := o.Config.Clone()
	config.MultiStatements, config.InterpolateParams, config.ParseTime = true, true, false
	config.MaxAllowedPacket, config.Logger = 0, &mysql.NopLogger{}
	inner, err := mysql.NewConnector(config)
	if err != nil {
		return s, err
	}
	l := &Log{db: sql.OpenDB(session{inner}), closed: make(chan struct{})}
	defer l.db.Close()
	l.db.SetMaxOpenConns(1)
	if s, err = l.summarize(ctx); err == nil {
		return s, nil
	}
	if code(err) == noSuchTable {
		return s, fmt.Errorf("%w: database %q has none of its tables", sqlstore.ErrNoLog, o.Config.DBName)
	}
	if no := refusal(err, o.Config); no != nil {
		return s, no
	}
	return s, l.classify(err)
}

func (l *Log) summarize(ctx context.Context) (s sqlstore.Summary, err error) {
	err = l.db.QueryRowContext(ctx, `
		SELECT value, COALESCE((SELECT value FROM meta WHERE name = 'kind'), 'api')
		FROM meta WHERE name = 'cluster_id'`).Scan(&l.clusterID, &l.kind)
	if err != nil {
		return s, err
	}
	return sqlstore.Summarize(ctx, l)
}
