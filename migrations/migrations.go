// Package migrations holds the schema of each dialect as numbered SQL and brings a
// database to the newest version.
//
// Every migration can be run twice (IF NOT EXISTS and the like): one that was cut off
// half-way is simply run again.
package migrations

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

//go:embed sqlite/*.sql postgres/*.sql mysql/*.sql
var files embed.FS

// Dialect names a folder of this package.
type Dialect string

const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
	MySQL    Dialect = "mysql"
)

// ErrNewer says that a newer program has migrated the database.
var ErrNewer = errors.New("schema is newer than this program")

// Newest returns the highest version this program knows of a dialect's schema.
func Newest(d Dialect) (int, error) {
	ups, err := fs.Glob(files, string(d)+"/[0-9]*_*.up.sql")
	if err != nil || len(ups) == 0 {
		return 0, fmt.Errorf("no migrations for %q", d)
	}
	var newest int
	_, err = fmt.Sscanf(ups[len(ups)-1][len(d)+1:], "%d_", &newest)
	return newest, err
}

// Schema returns the committed dump of a dialect's newest schema.
func Schema(d Dialect) (string, error) {
	b, err := files.ReadFile(string(d) + "/schema.sql")
	return string(b), err
}

// Check says whether a database at version is up to date, or, with ErrNewer, that it is
// not for this program.
func Check(d Dialect, version int, dirty bool) (done bool, err error) {
	newest, err := Newest(d)
	if err != nil {
		return false, err
	}
	if version > newest {
		return false, fmt.Errorf("the database has schema version %d and this plinth knows up to %d: %w; use a newer plinth", version, newest, ErrNewer)
	}
	return version == newest && !dirty, nil
}

// Up brings the database behind db to the newest version. Several processes may call it
// at once; db's own lock orders them. The caller closes db.
func Up(d Dialect, db database.Driver) error {
	version, dirty, err := db.Version()
	if err != nil {
		return fmt.Errorf("read schema version: %w", plain(err))
	}
	if done, err := Check(d, version, dirty); done || err != nil {
		return err
	}
	if err := run(d, db); err != nil {
		return fmt.Errorf("migrate schema: %w", plain(err))
	}
	return nil
}

func run(d Dialect, db database.Driver) error {
	source, err := iofs.New(files, string(d))
	if err != nil {
		return err
	}
	defer source.Close()
	m, err := migrate.NewWithInstance("iofs", source, string(d), db)
	if err != nil {
		return err
	}
	err = m.Up()
	if cut := (migrate.ErrDirty{}); errors.As(err, &cut) {
		// Whoever ran it held the lock and is gone, so nobody is at it now.
		if err := m.Force(before(cut.Version)); err != nil {
			return err
		}
		err = m.Up()
	}
	if errors.Is(err, migrate.ErrNoChange) {
		return nil
	}
	return err
}

// before returns the version that a migration to version starts from.
func before(version int) int {
	if version <= 1 {
		return database.NilVersion
	}
	return version - 1
}

// plain drops the statement that the library puts into its errors, which would make
// them many lines long.
func plain(err error) error {
	var e *database.Error
	if errors.As(err, &e) && e.OrigErr != nil {
		return e.OrigErr
	}
	var v database.Error
	if errors.As(err, &v) && v.OrigErr != nil {
		return v.OrigErr
	}
	return err
}
