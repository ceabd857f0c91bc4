package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, row := range []struct {
		content string
		mode    fs.FileMode
	}{{"old", 0o644}, {"new", 0o600}, {"", 0o666}} {
		if err := Write(path, []byte(row.content), row.mode); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil || string(content) != row.content {
			t.Errorf("the file has %q, %v, want %q", content, err, row.content)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != row.mode {
			t.Errorf("the file has the mode %v, %v, want %v", info.Mode().Perm(), err, row.mode)
		}
	}
	wantOnly(t, path)
}

func TestWriteBad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder")
	if err := os.MkdirAll(filepath.Join(path, "within"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("text"), 0o600); err == nil {
		t.Error("Write has replaced a folder")
	}
	wantOnly(t, path)
	if err := Write(filepath.Join(path, "missing", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Write into a folder that is missing = %v, want %v", err, fs.ErrNotExist)
	}
}

func TestCommit(t *testing.T) {
	dir := t.TempDir()
	path, temp := filepath.Join(dir, "file"), filepath.Join(dir, "temp")
	for _, closed := range []bool{true, false} {
		f, err := os.Create(temp)
		if err != nil {
			t.Fatal(err)
		}
		if closed {
			f.Close()
		}
		err = Commit(f, path)
		if _, there := os.Stat(path); (err == nil) == closed || (there == nil) == closed {
			t.Errorf("Commit of a file that is closed (%v) = %v, and the file: %v", closed, err, there)
		}
	}
	wantOnly(t, path)
}

// wantOnly fails the test if there is another file beside the one at path.
func wantOnly(t *testing.T, path string) {
	t.Helper()
	there, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if there = append(there, hidden...); err != nil || len(there) != 1 || there[0] != path {
		t.Errorf("the folder has %v, %v, want %s alone", there, err, path)
	}
}
