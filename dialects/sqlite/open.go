// Package sqlite keeps the log in one SQLite database: a file that belongs to one
// process, or memory.
//
// One connection writes, several read. A caller that writes takes the writer out of a
// channel and puts it back, so that no lock is held while SQLite works. The writer is driven
// without database/sql: its per-statement bookkeeping costs more than SQLite itself does
// for one small row.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	sqlite "github.com/mattn/go-sqlite3"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/sqlstore/changelog"
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
	// Reserve is how many bytes are kept for deletes when the disk is full; 0:
	// DefaultReserve, or a twentieth of a small file system. Negative: none.
	Reserve int64
	// Log gets what an operator should know; nil: nothing.
	Log       *slog.Logger
	MustExist bool           // changelog.ErrNoLog if there is no log; nothing is made then
	Kind      changelog.Kind // what the log is opened for; changelog.KindAPI
	Beside    bool           // of a file that another process has open, open it beside that one
}

// database is the file, or the memory, with the connections to it: the role of that name, and below the
// other roles, whose methods get the writer by use and transact and the readers by reads. What is not
// safe for concurrent use says what guards it; the rest is set before Open returns.
type database struct {
	path      string // empty in memory
	clusterID string
	kind      changelog.Kind
	made      bool
	peeks     bool // it only reads, beside a process that may write
	reads     *sql.DB
	freezing  sync.WaitGroup
	holds     atomic.Int64 // how many readers need that nothing is compacted; see hold
	writer    chan *writer // holds the writer while no caller writes

	changesPast sync.Mutex // held by who changes table past; taken before the writer

	checkpoints checkpointer

	// Of a file; nil in memory. The locks are held for as long as the log is open.
	lock  *os.File
	guard *guard
	place *place
	disk  *disk

	beside *beside // of a file that another process has open; then the four above are nil

	opened time.Time // see clock

	closeOnce sync.Once
	closed    chan struct{}
}

// Open opens the log, makes it if it is missing and brings its schema up to date. A file
// that another process has open is refused.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.Durability == "" {
		o.Durability = Full
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 4
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Kind == "" {
		o.Kind = changelog.KindAPI
	}
	l := &database{kind: o.Kind, opened: time.Now(), writer: make(chan *writer, 1), closed: make(chan struct{})}
	l.checkpoints.due = make(chan struct{}, 1)
	var err error
	if o.Path == "" {
		err = l.openMemory(ctx, o)
	} else {
		err = l.openFile(ctx, o)
	}
	if o.Beside && errors.Is(err, errRunning) {
		l.disk = nil
		err = l.openBeside(ctx, l.path, o)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("open sqlite database %s: %w", cmp.Or(o.Path, ":memory:"), classify(err))
	}
	return newLog(l), nil
}

func (l *database) openMemory(ctx context.Context, o Options) error {
	name := memoryName()
	if o.MustExist {
		return refused.Missing("a database in memory is always new")
	}
	first, made, err := migrateAt(name, "")
	if err != nil {
		return err
	}
	l.made = made
	defer first.Close() // the database lives for as long as one connection is open
	if err := claim(ctx, first, o.Kind); err != nil {
		return err
	}
	return l.connect(ctx, name, o)
}

func (l *database) openFile(ctx context.Context, o Options) error {
	if o.MustExist {
		if err := findFile(o.Path); err != nil {
			return err
		}
	}
	path, err := realPath(o.Path)
	if err != nil {
		return err
	}
	l.path = path
	if l.lock, err = pathLock(path + ".lock"); err != nil {
		return err
	}
	l.disk = newDisk(path, o.Reserve)
	epoch, err := makeFile(ctx, path, o.Kind)
	if err != nil {
		return err
	}
	if l.guard, err = guardFile(path); err != nil {
		return err
	}
	l.made = epoch != 0
	if !l.made {
		p, err := l.takeOver(ctx, o)
		if err != nil {
			return err
		}
		defer p.db.Close()
		epoch, l.made = p.epoch, p.made
	}
	if err := l.connect(ctx, fileName(path), o); err != nil {
		return err
	}
	l.disk.growth = l.growthNow
	l.place, err = newPlace(path, l.guard.file, epoch)
	return err
}

// takeOver makes an existing file ready for this process.
func (l *database) takeOver(ctx context.Context, o Options) (p prepared, err error) {
	if err := closeToOthers(l.path); err != nil {
		return p, err
	}
	warning, err := checkLog(l.path)
	if err != nil {
		return p, err
	}
	if warning != "" {
		o.Log.Warn(warning, "file", l.path)
	}
	if o.MustExist {
		if err := findLog(ctx, fileName(l.path)); err != nil {
			return p, err
		}
	}
	return prepare(ctx, l.path, l.guard.file, o.Kind)
}

// idleTime is how long a connection that reads is kept without use. Each holds up to 2 MiB of
// pages; a new one takes a quarter of a millisecond.
const idleTime = 10 * time.Second

// connect opens the writer and the readers on a migrated database.
func (l *database) connect(ctx context.Context, name string, o Options) error {
	w, err := openWriter(name, o.Durability, o.Kind)
	if err != nil {
		return err
	}
	l.writer <- w
	l.reads = sql.OpenDB(placedReader{connector(name + "&_query_only=true&_synchronous=" + string(o.Durability)), l})
	l.reads.SetMaxOpenConns(o.MaxConns)
	l.reads.SetMaxIdleConns(o.MaxConns)
	l.reads.SetConnMaxIdleTime(idleTime)
	l.clusterID, err = l.Cluster(ctx)
	return err
}

// Expect does nothing: the file belongs to this process, which refuses one that was exchanged under it.
func (l appender) Expect(*changelog.Witness) {}

// Exclusive is true: the file is locked.
func (l *database) Exclusive() bool { return true }

// Kind is what the log is used for.
func (l source) Kind() changelog.Kind { return l.kind }

// ClusterID names this log.
func (l source) ClusterID() string { return l.clusterID }

// Cluster reads whose log it is.
func (l *database) Cluster(ctx context.Context) (id string, err error) {
	if err = l.reads.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'cluster_id'`).Scan(&id); err != nil {
		return "", fmt.Errorf("read the cluster: %w", classify(err))
	}
	return id, nil
}

// Made says that Open has made the log.
func (l *database) Made() bool { return l.made }

// Follow gives no hint, because no other process can append. It watches the file's place
// and its disk meanwhile, and copies the write-ahead log into the file.
func (l *database) Follow(ctx context.Context, _ changelog.Follower) {
	if l.place == nil {
		<-ctx.Done()
		return
	}
	var beside sync.WaitGroup
	beside.Go(func() { l.runCheckpoints(ctx) })
	defer beside.Wait()
	l.watch(ctx)
}

// Close ends all use of the file. A write in progress is finished first. The locks go last,
// because closing the guard's file ends SQLite's locks, too.
func (l *database) Close() error {
	var errs []error
	l.closeOnce.Do(func() {
		close(l.closed)
		l.freezing.Wait()
		errs = append(errs, l.disconnect())
		if l.guard != nil {
			errs = append(errs, l.guard.release())
		}
		if l.lock != nil {
			errs = append(errs, pathUnlock(l.lock))
		}
	})
	return errors.Join(errs...)
}

// disconnect closes the connections; the last one copies the write-ahead log into the file.
// That would spoil a file that was put in the place of this one's contents: then
// the connections stay as they are until the process ends.
func (l *database) disconnect() error {
	if l.reads == nil {
		return nil
	}
	if l.peeks {
		return l.reads.Close()
	}
	w := <-l.writer
	if l.beside != nil {
		return errors.Join(l.reads.Close(), w.close()) // in this order: the writer keeps the log
	}
	if l.place != nil && l.place.look() != nil {
		if err := l.place.now(); errors.Is(err, errOverwritten) {
			return err
		}
	} else if err := w.closed(); err != nil && !isFull(err) {
		return errors.Join(err, l.reads.Close(), w.close())
	}
	if l.disk != nil && l.disk.now() != nil {
		// The log's file stays for the next start, which may have no room for a new one.
		if err := w.conn.SetFileControlInt("", sqlite.SQLITE_FCNTL_PERSIST_WAL, 1); err != nil {
			return errors.Join(err, l.reads.Close(), w.close())
		}
	}
	return errors.Join(l.reads.Close(), w.close())
}
