//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// keepOwner gives f the owner of the file at path, if there is one: root may rewrite the files of a
// server that runs as another user. Only root can do so.
func keepOwner(f *os.File, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		return f.Chown(int(s.Uid), int(s.Gid))
	}
	return nil
}

// syncFolder writes the names in a folder to the disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
