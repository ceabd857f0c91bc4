package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plinth-io/plinth/dialects/internal/inspect"
	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// countable is how many bytes a table may have for its rows to be counted.
const countable = 64 << 20

// Size counts the rows of a table of less than 64 MiB. Of a larger one they are the server's
// estimate, which is some seconds late.
func (l source) Size(ctx context.Context) (s changelog.Size, err error) {
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
	row := l.pool.QueryRow(ctx, `SELECT version, dirty FROM schema_migrations`)
	return inspect.Readable(l, migrations.Postgres, row, l.classify)
}

func peek(ctx context.Context, o Options) (*Log, error) {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}
	config.ConnConfig, config.MaxConns = o.Config.Copy(), 1
	if config.ConnConfig.ConnectTimeout <= 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // there may be a pooler
	}
	l := &database{closed: make(chan struct{})}
	if l.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	err = l.pool.QueryRow(ctx, `
		SELECT value, coalesce((SELECT value FROM meta WHERE name = 'kind'), 'api')
		FROM meta WHERE name = 'cluster_id'`).Scan(&l.clusterID, &l.kind)
	if err == nil {
		return newLog(l), nil
	}
	err = l.explainPeek(err, o)
	l.giveUp()
	return nil, err
}

func (l *database) explainPeek(err error, o Options) error {
	var e *pgconn.PgError
	if errors.As(err, &e) && (e.Code == "42P01" || e.Code == "3F000") {
		return fmt.Errorf("%w: database %q has none of its tables", changelog.ErrNoLog, o.Config.Database)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: table meta of database %q has no cluster id", changelog.ErrDamaged, o.Config.Database)
	}
	if no := refusal(err, o.Config); no != nil {
		return no
	}
	return l.classify(err)
}
