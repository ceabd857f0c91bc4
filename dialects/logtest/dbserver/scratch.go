package dbserver

import (
	"os"
	"path/filepath"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"golang.org/x/sys/unix"
)

// What the tests of all packages need at most: of room in a file system in memory, and of memory.
const (
	scratchRoom   = 6 << 30
	scratchMemory = 12 << 30
)

// Scratch makes a directory in memory for temporary files, which end with remove, and also when this process dies. dir is
// "" where there is no such place or too little memory.
//
// Tests make and remove many small files, such as the tables of database servers. Linux's ext4 may spend half of all
// processor time on finding an inode that has not been free for less than five seconds.
func Scratch() (dir string, remove func() error, err error) {
	none := func() error { return nil }
	if !roomy(sharedMemory) {
		return "", none, nil
	}
	if dir, err = os.MkdirTemp(sharedMemory, "plinth-"); err != nil {
		return "", none, err
	}
	// Database servers do not run as root.
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", none, err
	}
	reaper, err := startReaper(dir)
	if err != nil {
		return "", none, err
	}
	return dir, reaper.Close, nil
}

// sharedMemory is Linux's file system in memory, which other systems do not have.
var sharedMemory = filepath.FromSlash("/dev/shm")

func roomy(dir string) bool {
	var at unix.Statfs_t
	if err := unix.Statfs(dir, &at); err != nil || at.Bavail*uint64(at.Bsize) < scratchRoom {
		return false
	}
	for _, of := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if bytes, err := of(); err == nil && bytes < scratchMemory {
			return false
		}
	}
	return true
}
