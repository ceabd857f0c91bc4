package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	sqlite "github.com/mattn/go-sqlite3"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/migrations"
)

// A log may be open in a second process beside its server's, for "plinth copy --online". SQLite's own
// locks keep transactions of both apart; the second process takes none of the server's locks, reads in
// short transactions, and writes nothing but what Move notes. It neither migrates the schema, nor
// stamps the file, nor removes the write-ahead log at its end, all of which is the server's.

// beside is the file as it was when it was opened. The server looks itself whether it is in place.
type beside struct {
	path string
	id   identity
}

// check says whether the name still leads to the file that is open. Only stat is asked: closing a
// descriptor of the file would drop SQLite's locks, see guarded.
func (b *beside) check() error {
	id, err := identify(b.path)
	if err == nil && id != b.id {
		err = fmt.Errorf("%s is another file than the one that was opened; begin again", b.path)
	}
	return err
}

// openBeside opens the file at path, which another process has open.
func (l *database) openBeside(ctx context.Context, path string, o Options) error {
	if l.lock != nil { // of this name; the server has the file open by another one
		if err := l.lock.Close(); err != nil {
			return err
		}
		l.lock = nil
	}
	id, err := identify(path)
	if err != nil {
		return err
	}
	l.path, l.beside = path, &beside{path, id}
	if err := findLog(ctx, fileName(path)); err != nil {
		return err
	}
	if err := checkBeside(ctx, fileName(path), o); err != nil {
		return err
	}
	if err := l.connect(ctx, fileName(path), o); err != nil {
		return err
	}
	return l.keepLog(ctx)
}

// keepLog has the write-ahead log stay when the last connection ends: the server may have ended before.
func (l *database) keepLog(ctx context.Context) error {
	return l.use(ctx, func(w *writer) error {
		return w.conn.SetFileControlInt("", sqlite.SQLITE_FCNTL_PERSIST_WAL, 1)
	})
}

var errOtherSchema = errors.New("it is served by another version of plinth, with another schema; use the plinth that serves it")

// checkBeside refuses a log that this process would have to change before it can read it.
func checkBeside(ctx context.Context, name string, o Options) error {
	db := sql.OpenDB(connector(name))
	defer db.Close()
	var version int
	var dirty bool
	if err := db.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty); err != nil {
		return err
	}
	done, err := migrations.Check(migrations.SQLite, version, dirty)
	if err == nil && !done {
		err = errOtherSchema
	}
	if err != nil {
		return err
	}
	kind, err := kindOf(ctx, db)
	if err != nil {
		return err
	}
	return refused.Kind(kind, o.Kind)
}
