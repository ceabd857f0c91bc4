package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/golang-migrate/migrate/v4/database/sqlite3"
	sqlite "github.com/mattn/go-sqlite3"
	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore/atomicfile"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// connector opens connections by name without a driver registered under a global name.
type connector string

func (c connector) Connect(context.Context) (driver.Conn, error) {
	return c.Driver().Open(string(c))
}

func (connector) Driver() driver.Driver { return &sqlite.SQLiteDriver{} }

// uri returns SQLite's name of the file at path.
func uri(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

// fileName returns the driver's name of the file at path; settings follow with "&".
func fileName(path string) string { return uri(path) + "?mode=rw&_busy_timeout=10000" }

var memories atomic.Int64

// memoryName names a new database in memory that the connections of this process which
// use the name share. It has SQLite's ordinary file locks, unlike cache=shared.
func memoryName() string {
	return "file:/plinth-" + strconv.FormatInt(memories.Add(1), 10) + "?vfs=memdb&_busy_timeout=10000&_auto_vacuum=incremental"
}

// realPath makes the directory of path and returns the one name the file has, so that
// two paths to one file meet at one lock.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		return filepath.Join(dir, filepath.Base(path)), err
	}
	return real, err
}

// closeToOthers takes the permissions of others from a file, such as a backup that was put
// in place: it has secrets in it. The log's files inherit its permissions.
func closeToOthers(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return os.Chmod(path, info.Mode().Perm()&0o700)
}

// makeFile makes an empty log at path if there is none. It is built aside without a
// single sync and then put in place, so that a crash leaves all of it or nothing and a
// first start costs two syncs. It returns the new file's epoch, 0 if there was a file.
func makeFile(ctx context.Context, path string, kind changelog.Kind) (epoch uint32, err error) {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return 0, nil
	}
	if err := checkStray(path); err != nil {
		return 0, err
	}
	aside := path + ".new"
	if err := os.Remove(aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	// The file is made here, so that only its owner can read the secrets in it. The log's
	// files inherit its permissions.
	f, err := os.OpenFile(aside, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	f.Close()
	db, _, err := migrateAt(uri(aside)+"?mode=rw", "&_auto_vacuum=incremental&_journal_mode=OFF&_synchronous=OFF")
	if err != nil {
		return 0, err
	}
	if err = claim(ctx, db, kind); err == nil {
		err = raiseCounter(ctx, db)
	}
	if err == nil {
		epoch, err = newEpoch(ctx, db, path)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return 0, err
	}
	// A file whose stamp says that it is open must have its log beside it from the beginning.
	log, err := os.OpenFile(path+"-wal", os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	log.Close()
	if f, err = os.Open(aside); err != nil {
		return 0, err
	}
	return epoch, atomicfile.Commit(f, path)
}

// migrateAt brings the database to the newest schema, says whether there was none, and
// returns its only connection.
func migrateAt(name, settings string) (db *sql.DB, made bool, err error) {
	db = sql.OpenDB(connector(name + settings))
	db.SetMaxOpenConns(1)
	m, err := sqlite3.WithInstance(db, &sqlite3.Config{})
	if err == nil {
		made, err = migrations.Up(migrations.SQLite, m, time.Minute)
	}
	if err != nil {
		db.Close()
		return nil, false, err
	}
	return db, made, nil
}

// prepared is a file whose schema and stamp are up to date.
type prepared struct {
	db    *sql.DB // keeps the write-ahead log from being removed, until others have it open
	epoch uint32
	made  bool // it had no log
}

// prepare brings the file up to date. file is the same, open.
func prepare(ctx context.Context, path string, file *os.File, kind changelog.Kind) (p prepared, err error) {
	header, err := readHeader(file)
	if err == nil && header.changes < leastChanges { // else it is no database, as SQLite will say
		if err := raiseFileCounter(ctx, path); err != nil {
			return p, err
		}
	}
	p.db, p.made, err = migrateAt(fileName(path), "&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	if err != nil {
		return p, err
	}
	if err := claim(ctx, p.db, kind); err != nil {
		return prepared{}, errors.Join(err, p.db.Close())
	}
	p.epoch, err = newEpoch(ctx, p.db, path)
	if isFull(err) { // the old stamp will do, and reads need no room
		p.epoch, err = header.schema, nil
	}
	if err != nil {
		return prepared{}, errors.Join(err, p.db.Close())
	}
	return p, nil
}

// raiseFileCounter is for files that were copies until now.
func raiseFileCounter(ctx context.Context, path string) error {
	db := sql.OpenDB(connector(fileName(path) + "&_journal_mode=DELETE&_synchronous=FULL"))
	db.SetMaxOpenConns(1)
	return errors.Join(raiseCounter(ctx, db), db.Close())
}
