package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sqlite "github.com/mattn/go-sqlite3"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestForeignLog puts backups in the place of a database that was killed, whose write-ahead
// log stays beside them. No log may be replayed into a file that it is not of.
func TestForeignLog(t *testing.T) {
	for name, backup := range map[string]func(t *testing.T, path string) string{
		".backup":                        onlineBackup,
		".backup over an older backup":   func(t *testing.T, path string) string { return onlineBackupTwice(t, path) },
		"VACUUM INTO":                    vacuumInto,
		"a copy of a stopped database":   nil, // made before the start
		"a copy of a new database, idle": nil,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.db")
			cold := path + ".cold"
			l, err := Open(context.Background(), Options{Path: path, Log: quiet(t)})
			must(t, err)
			if name != "a copy of a new database, idle" {
				write(t, l, "/a")
			}
			must(t, l.Close())
			copyFile(t, path, cold)

			l = open(t, Options{Path: path})
			if backup != nil {
				write(t, l, "/b")
				cold = backup(t, path)
			}
			write(t, l, "/c")
			write(t, l, "/d")
			image := crash(t, path)
			copyFile(t, cold, image)

			_, err = Open(context.Background(), Options{Path: image})
			if !errors.Is(err, errForeignLog) || !strings.Contains(err.Error(), "remove "+image+"-wal and "+image+"-shm") {
				t.Fatalf("open of a backup beside the old log: %v", err)
			}
			// It was not touched: without the log it is what was backed up.
			must(t, os.Remove(image+"-wal"))
			os.Remove(image + "-shm")
			before := keys(t, cold)
			restored := open(t, Options{Path: image})
			if got := keys(t, image); got != before || strings.Contains(got, "/c") {
				t.Errorf("restored %s, want %s", got, before)
			}
			write(t, restored, "/e")
		})
	}
}

// TestOwnLog kills a database at many moments; what was acknowledged is there afterwards.
func TestOwnLog(t *testing.T) {
	ctx := context.Background()
	for name, before := range map[string]func(t *testing.T, l *Log){
		"nothing":    func(*testing.T, *Log) {},
		"one write":  func(t *testing.T, l *Log) { write(t, l, "/b") },
		"checkpoint": func(t *testing.T, l *Log) { write(t, l, "/b"); must(t, l.Reclaim(ctx)); write(t, l, "/c") },
		"compaction alone in the log": func(t *testing.T, l *Log) {
			write(t, l, "/b")
			must(t, l.truncateWAL(ctx))
			_, err := l.Compact(ctx, 1, 100, nil)
			must(t, err)
		},
		"an index by hand": func(t *testing.T, l *Log) {
			byHand(t, l.path, `CREATE INDEX mine ON log (at)`)
			write(t, l, "/b")
			must(t, l.truncateWAL(ctx))
			write(t, l, "/c")
		},
		"statistics by hand": func(t *testing.T, l *Log) { byHand(t, l.path, `ANALYZE`); write(t, l, "/b") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.db")
			l := open(t, Options{Path: path})
			write(t, l, "/a")
			for range 3 { // and again with what a crash has left
				before(t, l)
				want := keys(t, path)
				path = crash(t, path)
				l = open(t, Options{Path: path, Log: quiet(t)})
				if got := keys(t, path); got != want {
					t.Fatalf("after a crash %s, want %s", got, want)
				}
				before = func(t *testing.T, l *Log) { write(t, l, "/x"+fmt.Sprint(len(want))) }
			}
		})
	}
}

// TestCutOffStart leaves what a start does that was killed between its mark and the
// checkpoint.
func TestCutOffStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l, err := Open(context.Background(), Options{Path: path})
	must(t, err)
	write(t, l, "/a")
	must(t, l.Close())

	db, _, err := migrateAt(fileName(path), "&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	must(t, err)
	defer db.Close()
	must(t, setEpoch(context.Background(), db, leastEpoch+7, path))
	image := crash(t, path)
	if commits, err := countCommits(image + "-wal"); commits != 1 || err != nil {
		t.Fatalf("the log has %d commits, %v", commits, err)
	}
	open(t, Options{Path: image})
	if got := keys(t, image); got != "/a" {
		t.Errorf("keys %s", got)
	}
}

// TestUnmarked opens what an older plinth has left, which marked nothing.
func TestUnmarked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l := open(t, Options{Path: path})
	write(t, l, "/a")
	byHand(t, path, `DELETE FROM sqlite_sequence WHERE name LIKE 'plinth%'`)
	must(t, l.truncateWAL(context.Background()))
	write(t, l, "/b")
	write(t, l, "/c")
	image := crash(t, path)
	open(t, Options{Path: image})
	if got := keys(t, image); got != "/a /b /c" {
		t.Errorf("keys %s", got)
	}
}

// TestKilledStart leaves what a start that is killed before it has opened its connections
// does, a first one and a later one. The next start has nothing to complain of.
func TestKilledStart(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "p.db")
	_, err := makeFile(ctx, path, changelog.KindAPI)
	must(t, err)
	open(t, Options{Path: crash(t, path), Log: quiet(t)})

	l, err := Open(ctx, Options{Path: path, Log: quiet(t)})
	must(t, err)
	write(t, l, "/a")
	must(t, l.Close())
	g, err := guardFile(path)
	must(t, err)
	defer g.release()
	p, err := prepare(ctx, path, g.file, changelog.KindAPI)
	must(t, err)
	defer p.db.Close()
	image := crash(t, path)
	open(t, Options{Path: image, Log: quiet(t)})
	if got := keys(t, image); got != "/a" {
		t.Errorf("keys %s", got)
	}
}

// TestMissingLog opens a database that was killed and has no log: under another name it is
// refused, under its own it is opened with a warning.
func TestMissingLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l, err := Open(context.Background(), Options{Path: path})
	must(t, err)
	write(t, l, "/a")
	image := crash(t, path)
	must(t, l.Close())
	must(t, os.Remove(image+"-wal"))
	_, err = Open(context.Background(), Options{Path: image})
	if !errors.Is(err, errForeignLog) || !strings.Contains(err.Error(), path+"-wal") {
		t.Errorf("under another name: %v", err)
	}
	open(t, Options{Path: path, Log: quiet(t)}).Close() // this one was closed
	copyFile(t, image, path)
	var logged bytes.Buffer
	open(t, Options{Path: path, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	if out := logged.String(); strings.Count(out, "\n") != 1 || !strings.Contains(out, "write-ahead log is not there") {
		t.Errorf("logged %q", out)
	}
	must(t, os.WriteFile(image+"-wal", nil, 0o600)) // as the error says
	open(t, Options{Path: image, Log: quiet(t)})
}

// TestStrayLog makes no database where the log of another one lies.
func TestStrayLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l := open(t, Options{Path: path})
	write(t, l, "/ghost")
	image := crash(t, path)
	must(t, os.Remove(image))
	if _, err := Open(context.Background(), Options{Path: image}); !errors.Is(err, errForeignLog) || !strings.Contains(err.Error(), image+"-wal") {
		t.Errorf("open: %v", err)
	}
	if _, err := os.Stat(image); err == nil {
		t.Error("a database was made")
	}
	must(t, os.Remove(image+"-wal"))
	open(t, Options{Path: image})
	if got := keys(t, image); got != "" {
		t.Errorf("keys %s", got)
	}
}

// TestForeignLogOfOneCommit: also a log with a single transaction is that of a file.
func TestForeignLogOfOneCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l, err := Open(context.Background(), Options{Path: path})
	must(t, err)
	for i := range 20 {
		write(t, l, fmt.Sprint("/", i))
	}
	must(t, l.Close())
	copyFile(t, path, path+".cold")
	for name, last := range map[string]func(l *Log){
		"append":     func(l *Log) { write(t, l, "/last") },
		"compaction": func(l *Log) { _, err := l.Compact(context.Background(), 15, 100, nil); must(t, err) },
	} {
		copyFile(t, path+".cold", path)
		l, err := Open(context.Background(), Options{Path: path})
		must(t, err)
		for i := range 50 {
			write(t, l, fmt.Sprint("/more", i))
		}
		must(t, l.truncateWAL(context.Background()))
		last(l)
		image := crash(t, path)
		must(t, l.Close())
		if n, err := countCommits(image + "-wal"); n != 1 || err != nil {
			t.Fatalf("%s: %d commits, %v", name, n, err)
		}
		copyFile(t, path+".cold", image)
		if _, err := Open(context.Background(), Options{Path: image}); !errors.Is(err, errForeignLog) {
			t.Errorf("%s: open: %v", name, err)
		}
	}
}

// TestRestoredMode takes the permissions of others from a backup that has them.
func TestRestoredMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l, err := Open(context.Background(), Options{Path: path})
	must(t, err)
	must(t, l.Close())
	must(t, os.Chmod(path, 0o644))
	open(t, Options{Path: path})
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestRaiseCounter: however small the counter of changes is, a start makes it larger than that
// of a copy.
func TestRaiseCounter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l := open(t, Options{Path: path})
	copied := vacuumInto(t, path)
	if m, err := fileStamp(copied); err != nil || !m.isCopy() {
		t.Fatalf("copy %+v, %v", m, err)
	}
	l2 := open(t, Options{Path: copied})
	for _, l := range []*Log{l, l2} {
		m, err := readHeader(l.guard.file)
		if m.epoch = l.place.epoch; err != nil || m.isCopy() {
			t.Errorf("opened: %+v, %v", m, err)
		}
	}
}

// quiet returns a logger that fails the test.
func quiet(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(failing{t}, nil)) }

type failing struct{ t *testing.T }

func (f failing) Write(line []byte) (int, error) {
	f.t.Errorf("logged %s", line)
	return len(line), nil
}

func onlineBackup(t *testing.T, path string) string { return backupTo(t, path, path+".backup") }

func onlineBackupTwice(t *testing.T, path string) string {
	for range leastChanges + 4 {
		backupTo(t, path, path+".backup")
	}
	return path + ".backup"
}

// backupTo does what sqlite3's .backup does.
func backupTo(t *testing.T, path, to string) string {
	t.Helper()
	from, err := connector(fileName(path)).Connect(context.Background())
	must(t, err)
	defer from.Close()
	into, err := connector(uri(to)).Connect(context.Background())
	must(t, err)
	defer into.Close()
	b, err := into.(*sqlite.SQLiteConn).Backup("main", from.(*sqlite.SQLiteConn), "main")
	must(t, err)
	if done, err := b.Step(-1); !done || err != nil {
		t.Fatalf("backup: %v, %v", done, err)
	}
	must(t, b.Finish())
	return to
}

func vacuumInto(t *testing.T, path string) string {
	t.Helper()
	to := path + ".vacuumed"
	byHand(t, path, `VACUUM INTO '`+to+`'`)
	return to
}

// byHand runs a statement beside the log, as a person with sqlite3 would.
func byHand(t *testing.T, path, statement string) {
	t.Helper()
	db := sql.OpenDB(connector(fileName(path)))
	defer db.Close()
	_, err := db.Exec(statement)
	must(t, err)
}

// keys returns the keys in the log's order.
func keys(t *testing.T, path string) string {
	t.Helper()
	db := sql.OpenDB(connector(fileName(path)))
	defer db.Close()
	var all sql.NullString
	must(t, db.QueryRow(`SELECT group_concat(key, ' ') FROM (SELECT key FROM log ORDER BY id)`).Scan(&all))
	return all.String
}
