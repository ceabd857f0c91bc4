package highwater

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
)

// TestRevisionFile reads what older versions wrote, and leaves no second file when the disk is full.
func TestRevisionFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "revision")
	for text, want := range map[string]served{
		"c 12\n":                {"c", 12, ""},
		"c 0\n":                 {"c", 0, ""},
		"c 12\nsqlite:///a b\n": {"c", 12, "sqlite:///a b"},
		"c 12\nsqlite:///a":     {"c", 12, "sqlite:///a"},
	} {
		write(t, path, text)
		h, err := Read(path, "sqlite://x.db")
		if err != nil || h.last != want {
			t.Errorf("%q is %+v, %v", text, h, err)
		}
	}
	h := &Mark{path: path, cluster: "c", database: "d"}
	if err := h.write(1); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := h.write(2); err == nil {
		t.Error("written to a full disk")
	}
	if _, err := os.Lstat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary file is still there: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "c 1\nd\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if err := h.write(2); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMalformedFile has files that were damaged, or that somebody wrote by mistake.
func TestMalformedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "revision")
	for text, want := range map[string]string{
		"":                 "is empty",
		"\n":               "is empty",
		"\nsqlite:///a\n":  `begins with "" instead of CLUSTER REVISION`,
		"c\n":              `begins with "c" instead of CLUSTER REVISION`,
		"c ":               `begins with "c " instead of CLUSTER REVISION`,
		"c 1":              "ends within its first line",
		"c 12 13\n":        `begins with "c 12 13" instead of CLUSTER REVISION`,
		"c 12x\n":          `has "12x" in place of the revision`,
		"c -1\n":           `has "-1" in place of the revision`,
		"\x00\x00\x00\x00": "instead of CLUSTER REVISION",
	} {
		write(t, path, text)
		_, err := Read(path, "sqlite://x.db")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "write the line CLUSTER REVISION into it") {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
	if h, err := Read(path, "sqlite://:memory:"); err != nil || h.Known() {
		t.Errorf("a database in memory: %+v, %v", h, err)
	}
}

// TestUnreadableFile has a directory in the place of the file.
func TestUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Read(dir, "sqlite://a.db")
	if err == nil || !strings.Contains(err.Error(), "make it a file that user id") {
		t.Errorf("%v", err)
	}
}

// TestCheck has a database behind the file, as a restored one is: it goes on above all that can have been served
// since the file was written.
func TestCheck(t *testing.T) {
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "plinth.db")
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, c := range []struct{ served, want int64 }{{0, 0}, {500, 500 + slack}, {500, 500 + slack}, {500 + slack, 500 + slack}, {501 + slack, 501 + 2*slack}} {
		h := &Mark{last: served{cluster: log.ClusterID(), revision: c.served}}
		if err := h.Check(t.Context(), log, false, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		if head, err := log.Head(t.Context()); err != nil || head.Revision != c.want || head.Floor != c.want {
			t.Errorf("after %d was served the log is at %+v, want %d (%v)", c.served, head, c.want, err)
		}
	}
	other := &Mark{last: served{cluster: "other", revision: 7}}
	if err := other.Check(t.Context(), log, false, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrOther) {
		t.Errorf("another cluster: %v", err)
	}
}
