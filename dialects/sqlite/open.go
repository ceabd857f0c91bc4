// Package sqlite keeps the log in one SQLite database: a file that belongs to one
// process, or memory.
//
// One connection writes, several read. Whoever writes takes the writer out of a channel
// and puts it back, so that no lock is held while SQLite works. The writer is driven
// without database/sql: its per-statement bookkeeping costs more than SQLite itself does
// for one small row.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/plinth-io/plinth/sqlstore"
)

// Durability is what an acknowledged commit survives.
type Durability string

const (
	Full   Durability = "full"   // power loss: the WAL is synced at each commit
	Normal Durability = "normal" // a crash of the process; power loss may cost the last commits
	Off    Durability = "off"    // a crash of the process; power loss may cost the file
)

// Options of a log. Only Path is needed.
type Options struct {
	Path       string     // the file; made with its directory if it is missing. Empty: in memory
	Durability Durability // Full
	MaxConns   int        // connections that read; 4
}

// Log is a sqlstore.Log.
type Log struct {
	path      string // empty in memory
	clusterID string
	lock      *os.File // held for as long as the log is open; nil in memory
	reads     *sql.DB
	writer    chan *writer // holds the writer while nobody writes

	closeOnce sync.Once
	closed    chan struct{}
}

var _ sqlstore.Log = (*Log)(nil)

// Open opens the log, makes it if it is missing and brings its schema up to date. A file
// that another process has open is refused.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.Durability == "" {
		o.Durability = Full
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 4
	}
	l := &Log{writer: make(chan *writer, 1), closed: make(chan struct{})}
	var err error
	if o.Path == "" {
		err = l.openMemory(ctx, o)
	} else {
		err = l.openFile(ctx, o)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("open sqlite database %s: %w", cmp.Or(o.Path, ":memory:"), classify(err))
	}
	return l, nil
}

func (l *Log) openMemory(ctx context.Context, o Options) error {
	name := memoryName()
	first, err := migrateAt(name, "")
	if err != nil {
		return err
	}
	defer first.Close() // the database lives for as long as one connection is open
	return l.connect(ctx, name, o)
}

func (l *Log) openFile(ctx context.Context, o Options) error {
	path, err := realPath(o.Path)
	if err != nil {
		return err
	}
	l.path = path
	if l.lock, err = lockFile(path + ".lock"); err != nil {
		return err
	}
	if err := makeFile(path); err != nil {
		return err
	}
	name := fileName(path)
	db, err := migrateAt(name, "&_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	return l.connect(ctx, name, o)
}

// connect opens the writer and the readers on a migrated database.
func (l *Log) connect(ctx context.Context, name string, o Options) error {
	w, err := openWriter(name, o.Durability)
	if err != nil {
		return err
	}
	l.writer <- w
	l.reads = sql.OpenDB(connector(name + "&_query_only=true"))
	l.reads.SetMaxOpenConns(o.MaxConns)
	l.reads.SetMaxIdleConns(o.MaxConns)
	return l.reads.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'cluster_id'`).Scan(&l.clusterID)
}

// Exclusive is true: the file is locked.
func (l *Log) Exclusive() bool { return true }

// ClusterID names this log.
func (l *Log) ClusterID() string { return l.clusterID }

// Follow has nothing to say: nobody else can append.
func (l *Log) Follow(ctx context.Context, hint func(head int64)) {
	<-ctx.Done()
}

// Close ends all use of the file. A write in progress is finished first.
func (l *Log) Close() error {
	var errs []error
	l.closeOnce.Do(func() {
		close(l.closed)
		if l.reads != nil {
			errs = append(errs, l.reads.Close())
			w := <-l.writer
			errs = append(errs, w.close())
		}
		if l.lock != nil {
			errs = append(errs, l.lock.Close())
		}
	})
	return errors.Join(errs...)
}
