package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDataDirModes finds nothing secret that others than the owner may read.
func TestDataDirModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	start(t, Config{DataDir: dir})
	var files int
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files++
		if open := info.Mode().Perm() & 0o077; open != 0 && filepath.Ext(path) != ".crt" && path != filepath.Join(dir, "pki", "sa.pub") {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil || files < 8 {
		t.Errorf("%d files: %v", files, err)
	}
}

func TestAboutDataDir(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&fs.PathError{Op: "mkdir", Path: "/var/lib/plinth", Err: syscall.EACCES}, true},
		{&fs.PathError{Op: "mkdir", Path: "/var/lib", Err: syscall.EROFS}, true}, // on the way there
		{&fs.PathError{Op: "mkdir", Path: "/var/lib", Err: syscall.ENOENT}, true},
		{&fs.PathError{Op: "open", Path: "/var/lib/plinth/pki/ca.key", Err: syscall.EACCES}, true},
		{&os.LinkError{Op: "rename", Old: "a", New: "/var/lib/plinth/revision", Err: syscall.EROFS}, true},
		{&fs.PathError{Op: "open", Path: "/var/lib/plinth/pki/ca.crt", Err: syscall.ENOTDIR}, true},
		{&fs.PathError{Op: "open", Path: "/var/lib/plinth/pki/ca.crt", Err: syscall.ENOENT}, false},
		{&fs.PathError{Op: "open", Path: "/etc/policy.yaml", Err: syscall.EACCES}, false},
		{&fs.PathError{Op: "open", Path: "/var/lib/plinth2/x", Err: syscall.EACCES}, false},
		{errors.New("permission denied"), false},
	} {
		err := aboutDataDir("/var/lib/plinth", fmt.Errorf("start: %w", tt.err))
		if got := strings.HasPrefix(err.Error(), "Config.DataDir /var/lib/plinth: start: "); got != tt.want {
			t.Errorf("%v: got %v", tt.err, err)
		}
		if !errors.Is(err, tt.err) {
			t.Errorf("%v is not wrapped", tt.err)
		}
	}
}

// A data directory that cannot be made, because a file is in its way, also for root.
func TestDataDirInTheWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := New(Config{DataDir: filepath.Join(file, "data")}).Open(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "Config.DataDir "+file) || !strings.Contains(err.Error(), "write another one") {
		t.Errorf("error %v", err)
	}
}
