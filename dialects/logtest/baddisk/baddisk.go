// Package baddisk has the files of SQLite on a disk that fails as a test says, through SQLite's own
// interface to file systems (VFS). It owns the extension of SQLite that does so, and knows nothing of what
// is in the files. All databases of a process are on that disk once it is there.
package baddisk

import (
	"database/sql"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	sqlite "github.com/mattn/go-sqlite3"
)

//go:embed testdata/baddisk.c
var source []byte

// Operations that fail.
const (
	Read     = "r"
	Write    = "w" // a sector of it is there
	Sync     = "s"
	Truncate = "t"
)

// Errors of SQLite, as its real file system reports them.
const (
	ReadError     = 10 | 1<<8 // SQLITE_IOERR_READ
	WriteError    = 10 | 3<<8 // SQLITE_IOERR_WRITE
	SyncError     = 10 | 4<<8 // SQLITE_IOERR_FSYNC
	TruncateError = 10 | 6<<8 // SQLITE_IOERR_TRUNCATE
	Full          = 13        // SQLITE_FULL
)

// control is the connection through which the disk is told what to do.
var control = sync.OnceValues(func() (*sql.DB, error) {
	dir, err := os.MkdirTemp("", "plinth-baddisk-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	library, err := build(dir)
	if err != nil {
		return nil, err
	}
	sql.Register("baddisk", &sqlite.SQLiteDriver{ConnectHook: func(c *sqlite.SQLiteConn) error {
		return c.LoadExtension(library, "sqlite3_extension_init")
	}})
	db, err := sql.Open("baddisk", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetConnMaxLifetime(0)
	return db, db.Ping()
})

// build compiles the extension with the headers of the SQLite that is in this program.
func build(dir string) (library string, err error) {
	headers, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/mattn/go-sqlite3").Output()
	if err != nil {
		return "", err
	}
	file, library := filepath.Join(dir, "baddisk.c"), filepath.Join(dir, "baddisk.so")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	out, err := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-I", string(headers[:len(headers)-1]), "-o", library, file).CombinedOutput()
	if err != nil {
		return "", &buildError{string(out), err}
	}
	return library, nil
}

type buildError struct {
	output string
	err    error
}

func (e *buildError) Error() string { return "build the bad disk: " + e.err.Error() + ": " + e.output }

// Disk is the one that SQLite has. It has no more than one fault at a time, and must not be used by two
// tests at once.
type Disk struct{ t testing.TB }

// New puts all files that SQLite opens from now on onto the disk. At the end of the test it is well.
func New(t testing.TB) *Disk {
	t.Helper()
	d := &Disk{t}
	t.Cleanup(func() { d.Heal(); d.run("bad_watch('')") })
	d.Heal()
	return d
}

// run evaluates a call of the extension.
func (d *Disk) run(call string, args ...any) (n int) {
	d.t.Helper()
	db, err := control()
	if err == nil {
		var result sql.NullInt64
		err = db.QueryRow("SELECT "+call, args...).Scan(&result)
		n = int(result.Int64)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// Fail makes an operation on the file of that path fail until Heal.
func (d *Disk) Fail(path, operation string, code int) {
	d.t.Helper()
	d.run("bad_fail(?, ?, ?)", operation, path, code)
}

// Heal ends the fault.
func (d *Disk) Heal() { d.t.Helper(); d.run("bad_fail('', '', 0)") }

// Failures returns how many operations have failed since Fail.
func (d *Disk) Failures() int { d.t.Helper(); return d.run("bad_hits()") }

// Watch remembers from now on what the files of a new database were when each was last synced.
func (d *Disk) Watch(path string) { d.t.Helper(); d.run("bad_watch(?)", path) }

// PowerCut copies a database that is watched, as a power cut at this moment may leave it: of each file what
// was synced, or all that was written. A file that is not there yet is empty.
func (d *Disk) PowerCut(path, to string, lost map[string]bool) {
	d.t.Helper()
	d.run("bad_hold(1)")
	defer d.run("bad_hold(0)")
	for _, ending := range []string{"", "-wal"} {
		from := path + ending
		if lost[ending] {
			from += ".synced"
		}
		// Another process copies, because SQLite's locks end when this one closes a file.
		if out, err := exec.Command("cp", from, to+ending).CombinedOutput(); err != nil && lost[ending] {
			err = os.WriteFile(to+ending, nil, 0o600)
			if err != nil {
				d.t.Fatal(err)
			}
		} else if err != nil {
			d.t.Fatalf("copy %s: %v: %s", from, err, out)
		}
	}
}
