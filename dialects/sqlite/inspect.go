package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/plinth-io/plinth/dialects/internal/inspect"
	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Inspect reads the summary of the log in a file as Peek opens it, of any schema.
func Inspect(ctx context.Context, o Options) (s changelog.Summary, err error) {
	l, err := peek(ctx, o)
	if err != nil {
		return s, err
	}
	return inspect.Summary(ctx, l, classify)
}

// Peek opens the log in a file for reading, beside a process that has it open or without one. It takes
// none of the locks by which processes keep each other away, makes no file and writes to none. There
// must be a log already, else the error wraps changelog.ErrNoLog.
func Peek(ctx context.Context, o Options) (*Log, error) {
	l, err := peek(ctx, o)
	if err != nil {
		return nil, err
	}
	row := l.reads.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations`)
	return inspect.Readable(l, migrations.SQLite, row, classify)
}

func peek(ctx context.Context, o Options) (*Log, error) {
	if o.Path == "" {
		return nil, fmt.Errorf("%w: a database in memory cannot be seen from outside its process", changelog.ErrNoLog)
	}
	path, err := filepath.EvalSymlinks(o.Path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s does not exist", changelog.ErrNoLog, o.Path)
	} else if err != nil {
		return nil, err
	}
	settings, err := readOnly(path)
	if err != nil {
		return nil, err
	}
	l := &database{path: path, opened: time.Now(), reads: sql.OpenDB(connector(uri(path) + settings)), peeks: true, closed: make(chan struct{})}
	l.reads.SetMaxOpenConns(1)
	if err := l.identify(ctx); err != nil {
		l.Close()
		return nil, classify(err)
	}
	return newLog(l), nil
}

// identify reads what the log is, if there is one.
func (l *database) identify(ctx context.Context) (err error) {
	var tables int
	err = l.reads.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name IN ('log', 'meta')`).Scan(&tables)
	if err == nil && tables < 2 {
		return fmt.Errorf("%w: %s has none of its tables", changelog.ErrNoLog, l.path)
	}
	if err == nil {
		l.clusterID, err = l.Cluster(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			err = fmt.Errorf("%w: table meta of %s has no cluster id", changelog.ErrDamaged, l.path)
		}
	}
	if err == nil {
		l.kind, err = kindOf(ctx, l.reads)
	}
	return err
}

// readOnly returns the settings of a connection that makes no file. A write-ahead log is there
// while a process has the database open, and after that if it was not closed. Then its index is
// there, too, which SQLite would make if it were missing. Without a log it would make both.
func readOnly(path string) (settings string, err error) {
	const settled = "?mode=ro&immutable=1"
	log, logErr := os.Stat(path + "-wal")
	_, indexErr := os.Stat(path + "-shm")
	missing := errors.Is(indexErr, os.ErrNotExist)
	switch {
	case errors.Is(logErr, os.ErrNotExist), logErr == nil && log.Size() == 0 && missing:
		return settled, nil
	case logErr == nil && missing:
		return "", fmt.Errorf("%s was not closed, and %[1]s-shm is missing: start and stop plinth on it once, which puts it in order", path)
	}
	return "?mode=ro&_busy_timeout=2000", errors.Join(logErr, indexErr)
}
