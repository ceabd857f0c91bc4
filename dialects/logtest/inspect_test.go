package logtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Inspect reads a database while a process has it open, and while none has.
func TestInspect(t *testing.T) {
	Each(t, func(t *testing.T, d Dialect) {
		dsn := d.Fresh(t)
		none := func() error { _, err := dialects.Inspect(t.Context(), dsn, dialects.Options{}); return err }
		if err := none(); !errors.Is(err, changelog.ErrNoLog) {
			t.Errorf("before there is a log: %v", err)
		}
		l := openDSN(t, dsn)
		fillForSize(t, l)
		if err := l.Raise(t.Context(), 5); err != nil { // is below the head, so it does nothing
			t.Fatal(err)
		}
		want := changelog.Summary{ClusterID: l.ClusterID(), Kind: changelog.KindAPI, Head: changelog.Head{Revision: 201}, Objects: 199}
		look := func(when string) {
			t.Helper()
			got, err := dialects.Inspect(t.Context(), dsn, dialects.Options{})
			if got.Rows != 201 || got.Bytes <= 0 {
				t.Errorf("%s: size %+v", when, got.Size)
			}
			got.Size = changelog.Size{}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got)\n%s", when, err, diff)
			}
		}
		look("while it is open")
		if _, err := l.Append(t.Context(), nil); err != nil {
			t.Errorf("a write after it: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		look("when it is closed")
	})
}

// Of a SQLite database that is open, closed or was cut off, Inspect leaves all files as they
// are and makes none.
func TestInspectLeavesFiles(t *testing.T) {
	dir := t.TempDir()
	dsn := "sqlite://" + filepath.Join(dir, "plinth.db")
	look := func(dir, when string, rows int64) {
		t.Helper()
		before := fingerprints(t, dir)
		s, err := dialects.Inspect(t.Context(), "sqlite://"+filepath.Join(dir, "plinth.db"), dialects.Options{})
		if err != nil || s.Rows != rows {
			t.Errorf("%s: %+v, %v; want %d rows", when, s, err, rows)
		}
		if diff := cmp.Diff(before, fingerprints(t, dir)); diff != "" {
			t.Errorf("%s: files differ: %s", when, diff)
		}
	}
	l := openDSN(t, dsn)
	fillForSize(t, l)
	look(dir, "open", 201)
	cut := t.TempDir() // as a killed process leaves it
	if out, err := exec.Command("cp", "-r", dir+"/.", cut).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	look(cut, "cut off", 201)
	if err := os.Remove(filepath.Join(cut, "plinth.db-shm")); err != nil {
		t.Fatal(err)
	}
	if _, err := dialects.Inspect(t.Context(), "sqlite://"+filepath.Join(cut, "plinth.db"), dialects.Options{}); err == nil || !strings.Contains(err.Error(), "start and stop plinth on it once") {
		t.Errorf("without an index of the log: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	look(dir, "closed", 201)
	if _, err := dialects.Inspect(t.Context(), "sqlite://"+filepath.Join(dir, "no", "such.db"), dialects.Options{}); !errors.Is(err, changelog.ErrNoLog) {
		t.Errorf("no such file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "no")); err == nil {
		t.Error("a directory was made")
	}
}

// fingerprints are the files in dir with their sizes and times, but for the index of the
// write-ahead log, which is shared memory. They are not read: that would end SQLite's locks.
func fingerprints(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = fmt.Sprint(info.Size(), info.ModTime())
		if strings.HasSuffix(e.Name(), "-shm") {
			found[e.Name()] = "shared"
		}
	}
	return found
}
