package highwater

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRevisionFile reads what older versions wrote, ignores what nobody wrote, and leaves
// no second file when the disk is full.
func TestRevisionFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "revision")
	for text, want := range map[string]served{
		"c 12\n":                {"c", 12, ""},
		"c 12\nsqlite:///a b\n": {"c", 12, "sqlite:///a b"},
		"":                      {},
		"c\n":                   {},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := Read(path, "sqlite://x.db", slog.New(slog.DiscardHandler))
		if err != nil || h.last != want {
			t.Errorf("%q is %+v, %v", text, h.last, err)
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

// TestUnreadableFile has a directory in the place of the file.
func TestUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Read(dir, "sqlite://a.db", slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "make it a file that user id") {
		t.Errorf("%v", err)
	}
}
