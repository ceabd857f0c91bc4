package sqlite

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockAt is the one byte of the database file that is locked. It lies behind the bytes that
// SQLite locks, 0x40000000 and the 511 after it (https://sqlite.org/src/file/src/os.h), so
// that neither is in the way of the other, also where locks reach other machines.
const lockAt = 0x40000000 + 1024

// lockInode locks the file that f is, whatever its name. The lock belongs to the open file
// description: unlike an ordinary lock by fcntl, it does not end when another descriptor of
// the file is closed, and it holds against this process as well.
func lockInode(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{
		Type: unix.F_WRLCK, Whence: io.SeekStart, Start: lockAt, Len: 1,
	})
	if err != nil {
		return lockError(f.Name(), err)
	}
	return nil
}

// unlockInode ends the lock, for the reason that pathUnlock has.
func unlockInode(f *os.File) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{
		Type: unix.F_UNLCK, Whence: io.SeekStart, Start: lockAt, Len: 1,
	})
}
