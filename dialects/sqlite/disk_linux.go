package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// fillFile gives f blocks of its own, without writing them where the file system can.
func fillFile(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return writeZeros(f, size)
	}
	return err
}
