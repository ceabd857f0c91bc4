package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/golang-migrate/migrate/v4/database/sqlite3"
	sqlite "github.com/mattn/go-sqlite3"
	"github.com/plinth-io/plinth/migrations"
)

// connector opens connections by name without a driver registered under a global name.
type connector string

func (c connector) Connect(context.Context) (driver.Conn, error) {
	return c.Driver().Open(string(c))
}

func (connector) Driver() driver.Driver { return &sqlite.SQLiteDriver{} }

// fileName returns how the driver calls the file at path; settings follow with "&".
func fileName(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rw&_busy_timeout=10000"
}

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

// lockFile takes the lock that keeps other processes away; closing the file lets it go.
// SQLite's own locks cannot do it: they guard transactions, and the file is open for
// years. The database itself must not be opened here: closing it would drop SQLite's.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another plinth is running on it (it holds %s); stop that one or use another file", path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// makeFile makes an empty log at path if there is none. It is built aside without a
// single sync and then put in place, so that a crash leaves all of it or nothing and a
// first start costs two syncs.
func makeFile(path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	aside := path + ".new"
	if err := os.Remove(aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// Made here, so that nobody else can read the secrets in it. The log's files inherit that.
	f, err := os.OpenFile(aside, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	name := "file:" + (&url.URL{Path: aside}).EscapedPath() + "?mode=rw"
	db, err := migrateAt(name, "&_auto_vacuum=incremental&_journal_mode=OFF&_synchronous=OFF")
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := syncPath(aside); err != nil {
		return err
	}
	if err := os.Rename(aside, path); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// migrateAt brings the database to the newest schema and returns its only connection.
func migrateAt(name, settings string) (*sql.DB, error) {
	db := sql.OpenDB(connector(name + settings))
	db.SetMaxOpenConns(1)
	m, err := sqlite3.WithInstance(db, &sqlite3.Config{})
	if err == nil {
		err = migrations.Up(migrations.SQLite, m)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}
