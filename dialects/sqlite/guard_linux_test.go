package sqlite

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestGuardKeepsLocks: an open that is refused leaves SQLite's own locks on the file alone,
// by which the tools that users have know that it is in use.
func TestGuardKeepsLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l := open(t, Options{Path: path})
	write(t, l, "/a")
	must(t, os.Remove(path+".lock"))
	if _, err := Open(context.Background(), Options{Path: path}); !errors.Is(err, errRunning) {
		t.Fatalf("second open: %v", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close() // not before the locks have been looked at: it ends them
	// A lock of an open file description is in conflict with those of this process as well (fcntl_locking(2)).
	shared := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0x40000002, Len: 510}
	must(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &shared))
	if shared.Type != unix.F_RDLCK {
		t.Error("SQLite's shared lock on the file is gone")
	}
}
