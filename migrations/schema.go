package migrations

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
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

// Readable returns nil if a program that does not migrate can read a database at version, else why not.
func Readable(d Dialect, version int, dirty bool) error {
	done, err := Check(d, version, dirty)
	if err == nil && !done {
		newest, _ := Newest(d)
		err = fmt.Errorf("the database has schema version %d and this plinth reads version %d; start plinth on it once, which brings the schema up to date, or use the plinth that serves it", version, newest)
	}
	return err
}

// Exists says whether a database at version holds a log. Where the first migration was cut
// off there is none yet.
func Exists(version int, dirty bool) bool { return version > 1 || version == 1 && !dirty }
