package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plinth-io/plinth/sqlstore"
)

// countable is how many bytes a table may have for its rows to be counted.
const countable = 64 << 20

// Size counts the rows of a table of less than 64 MiB. Of a larger one they are the server's
// estimate, which is some seconds late.
func (l *Log) Size(ctx context.Context) (s sqlstore.Size, err error) {
	var log, past int64
	err = l.pool.QueryRow(ctx, `
		SELECT pg_relation_size('log'::regclass),
		       pg_total_relation_size('log'::regclass),
		       coalesce((SELECT n_live_tup FROM pg_stat_all_tables WHERE relid = 'log'::regclass), 0),
		       coalesce(pg_relation_size(to_regclass('past')), -1),
		       coalesce(pg_total_relation_size(to_regclass('past')), 0),
		       coalesce((SELECT n_live_tup FROM pg_stat_all_tables WHERE relid = to_regclass('past')), 0)`).
		Scan(&log, &s.Bytes, &s.Rows, &past, &s.PastBytes, &s.Past)
	if err == nil && log < countable {
		err = l.pool.QueryRow(ctx, `SELECT count(*) FROM log`).Scan(&s.Rows)
	}
	if err == nil && past >= 0 && past < countable { // an older version has none, which Inspect may meet
		err = l.pool.QueryRow(ctx, `SELECT count(*) FROM past`).Scan(&s.Past)
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
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return s, err
	}
	config.ConnConfig, config.MaxConns = o.Config.Copy(), 1
	if config.ConnConfig.ConnectTimeout <= 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	l := &Log{closed: make(chan struct{})}
	if l.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return s, err
	}
	defer l.pool.Close()
	if s, err = l.summarize(ctx); err == nil {
		return s, nil
	}
	var e *pgconn.PgError
	if errors.As(err, &e) && (e.Code == "42P01" || e.Code == "3F000") {
		return s, fmt.Errorf("%w: database %q has none of its tables", sqlstore.ErrNoLog, o.Config.Database)
	}
	if no := refusal(err, o.Config); no != nil {
		return s, no
	}
	return s, l.classify(err)
}

func (l *Log) summarize(ctx context.Context) (s sqlstore.Summary, err error) {
	err = l.pool.QueryRow(ctx, `
		SELECT value, coalesce((SELECT value FROM meta WHERE name = 'kind'), 'api')
		FROM meta WHERE name = 'cluster_id'`).Scan(&l.clusterID, &l.kind)
	if err != nil {
		return s, err
	}
	return sqlstore.Summarize(ctx, l)
}
