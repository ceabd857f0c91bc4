package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// logTo returns a logger to the test's output.
func logTo(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// replaced is a data directory whose database is exchanged.
type replaced struct {
	*testing.T
	dir string
}

func (r replaced) open(c Config) (*Server, error) {
	c.DataDir, c.Log, c.Controllers, c.Linger = r.dir, logTo(r), []string{}, time.Millisecond
	s := New(c)
	return s, s.Open(context.Background())
}

// serve serves a database with one object more and returns the last revision.
func (r replaced) serve(c Config) int64 {
	r.Helper()
	s, err := r.open(c)
	if err != nil {
		r.Fatal(err)
	}
	r.create(s)
	if err := s.Close(); err != nil {
		r.Fatal(err)
	}
	if c.DSN == "sqlite://:memory:" {
		return 0
	}
	var revision int64
	text, err := os.ReadFile(revisionFile(r.dir))
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%s %d", new(string), &revision)
	}
	if err != nil {
		r.Fatal(err)
	}
	return revision // a server that leaves a shared database writes once more
}

func (r replaced) create(s *Server) {
	r.Helper()
	request(r.T, s, "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"generateName":"a-"}}`, 201)
}

// refused fails to serve a database, in one line that says all of want.
func (r replaced) refused(dsn string, want ...string) {
	r.Helper()
	s, err := r.open(Config{DSN: dsn})
	if err == nil {
		s.Close()
		r.Fatal("another database was served")
	}
	text := err.Error()
	for _, w := range want {
		if !strings.Contains(text, w) {
			r.Errorf("%s\nhas no %s", text, w)
		}
	}
	if !errors.Is(err, ErrConfig) || strings.Contains(text, "\n") {
		r.Errorf("refused with %v", err)
	}
}

func (r replaced) files() (names []string) {
	r.Helper()
	err := filepath.WalkDir(filepath.Dir(r.dir), func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return names
}

// TestEmptyDatabase starts a server that has served another database on an empty one. It
// is refused, as often as it is tried, and leaves nothing behind, until it is meant.
func TestEmptyDatabase(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		r := replaced{t, filepath.Join(t.TempDir(), "data")}
		first, second, third := d.Fresh(t), d.Fresh(t), d.Fresh(t)
		seen := r.serve(Config{DSN: first})
		before := r.files()
		for range 2 {
			r.refused(second, fmt.Sprintf("at revision %d in %s; now there is no plinth database", seen, dialects.Describe(first)), dialects.Describe(second), "--new-database (PLINTH_NEW_DATABASE=true)")
		}
		if after := r.files(); !slices.Equal(before, after) {
			t.Errorf("files were %v and are %v", before, after)
		}
		if _, err := dialects.Open(t.Context(), second, dialects.Options{MustExist: true}); !errors.Is(err, changelog.ErrNoLog) {
			t.Errorf("what a refusal has left: %v", err)
		}

		s, err := r.open(Config{DSN: second, NewDatabase: true})
		if err != nil {
			t.Fatal(err)
		}
		if now := s.store.Revision(); now <= seen {
			t.Errorf("the revision went back from %d to %d", seen, now)
		}
		watch := request(t, s, "GET", fmt.Sprintf("/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion=%d", seen), "", 200)
		if !strings.Contains(watch, `"code":410`) {
			t.Errorf("a watch of the other database got %s", watch)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}

		// The second is the known one now, with the flag or without.
		seen = r.serve(Config{DSN: second, NewDatabase: true})
		if again := r.serve(Config{DSN: second}); again <= seen || again > seen+100 {
			t.Errorf("after %d comes %d", seen, again)
		}
		r.refused(first, "now there is cluster ", " objects at revision ")
		seen = r.serve(Config{DSN: second})
		if other := r.serve(Config{DSN: first, NewDatabase: true}); other <= seen {
			t.Errorf("the revision went back from %d to %d", seen, other)
		}
		r.serve(Config{DSN: third, NewDatabase: true})
	})
}

// TestCopiedDatabase moves from one database to a copy of a copy of it, which is no
// surprise, and back, which is.
func TestCopiedDatabase(t *testing.T) {
	r := replaced{t, filepath.Join(t.TempDir(), "data")}
	var dsns []string
	for range 4 {
		dsns = append(dsns, logtest.SQLite(t))
	}
	seen := r.serve(Config{DSN: dsns[0]})
	copyLog(t, dsns[0], dsns[1])
	copyLog(t, dsns[1], dsns[2])
	if now := r.serve(Config{DSN: dsns[2]}); now <= seen {
		t.Errorf("the revision went back from %d to %d", seen, now)
	}
	r.refused(dsns[0], "now there is cluster ")

	// What was served after it had been copied is lost, and its revisions are not given anew.
	copyLog(t, dsns[2], dsns[3])
	ahead, err := r.open(Config{DSN: dsns[2]})
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		r.create(ahead)
	}
	seen = ahead.store.Revision()
	if err := ahead.Close(); err != nil {
		t.Fatal(err)
	}
	if now := r.serve(Config{DSN: dsns[3]}); now <= seen {
		t.Errorf("the revision went back from %d to %d", seen, now)
	}
}

func copyLog(t *testing.T, from, to string) {
	t.Helper()
	source, target := openLog(t, from), openLog(t, to)
	if _, err := transfer.Copy(t.Context(), target, source, transfer.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(source.Close(), target.Close()); err != nil {
		t.Fatal(err)
	}
}

func openLog(t *testing.T, dsn string) changelog.Log {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// TestHalfCopiedDatabase refuses a target of a copy that was cut off.
func TestHalfCopiedDatabase(t *testing.T) {
	dsn := logtest.SQLite(t)
	source, target := openLog(t, "sqlite://:memory:"), openLog(t, dsn)
	for i := range 600 {
		change := changelog.Change{Key: fmt.Sprintf("/registry/core/configmaps/default/c%03d", i), Value: []byte(`{"metadata":{}}`)}
		if _, err := source.Append(t.Context(), []changelog.Change{change}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := transfer.Copy(ctx, target, source, transfer.CopyOptions{Progress: func(transfer.Copied) { cancel() }})
	if !errors.Is(err, changelog.ErrHalfCopied) || !errors.Is(err, context.Canceled) {
		t.Fatalf("a copy that was cut off: %v", err)
	}
	other := openLog(t, "sqlite://:memory:")
	if _, err := transfer.Copy(t.Context(), target, other, transfer.CopyOptions{}); !errors.Is(err, changelog.ErrHalfCopied) || !errors.Is(err, transfer.ErrCannotResume) {
		t.Errorf("a copy of another database: %v", err)
	}
	if _, err := transfer.Copy(t.Context(), other, target, transfer.CopyOptions{}); err == nil {
		t.Error("a half was copied on")
	}
	target.Close()
	r := replaced{t, filepath.Join(t.TempDir(), "data")}
	r.refused(dsn, "a part of a copy", "copy or import again")
}

// TestMovedDatabase refuses the source of an online copy until it is taken back.
func TestMovedDatabase(t *testing.T) {
	dsn := logtest.SQLite(t)
	r := replaced{t, filepath.Join(t.TempDir(), "data")}
	r.serve(Config{DSN: dsn})
	move := func(to string) {
		log := openLog(t, dsn)
		if _, err := log.Move(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	move("cluster postgres://db.example.com/plinth")
	r.refused(dsn, "has moved to postgres://db.example.com/plinth", "serve that one", "plinth copy --take-back --from")
	move("")
	r.serve(Config{DSN: dsn})
}

// TestDatabaseInMemory is new with every start, and no surprise.
func TestDatabaseInMemory(t *testing.T) {
	r := replaced{t, filepath.Join(t.TempDir(), "data")}
	r.serve(Config{})
	remembered, err := os.ReadFile(filepath.Join(r.dir, "revision"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.serve(Config{DSN: "sqlite://:memory:"})
	}
	after, err := os.ReadFile(filepath.Join(r.dir, "revision"))
	if err != nil || string(after) != string(remembered) {
		t.Errorf("the file had %q and has %q, %v", remembered, after, err)
	}
	r.serve(Config{})
}

// A reason is told, but not where the database is or who uses it.
func TestStorageReason(t *testing.T) {
	secret := errors.New("user=ada host=db.example.com password=s3cret")
	refused := &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, Err: syscall.ECONNREFUSED}
	tests := []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %w: %w", changelog.ErrUnavailable, secret, refused), "database unavailable: connection refused"},
		{fmt.Errorf("%w: %w", changelog.ErrUnavailable, secret), "database unavailable; the log says more"},
		{secret, "database error; the log says more"},
		{changelog.Moved("cluster postgres://db.example.com/plinth"), "this database has moved; the log says where to"},
	}
	for _, tt := range tests {
		if got := storageReason(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
