// Package atomicfile replaces files as a whole: whoever reads one sees the old content or the new, also after a
// crash. It owns nothing, and knows of no other package.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes content the file at path, with the permissions of mode. A file that is there is replaced and
// keeps its owner. When Write returns nil the file is on the disk; else what was at path is there as before.
func Write(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	if err = keepOwner(f, path); err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return Commit(f, path)
}

// Commit gives a complete file, which is open and in the same folder, the name that path has: it writes f to the
// disk, closes it, renames it and writes the folder to the disk. On an error f is closed and keeps its name, unless
// the folder alone could not be written.
func Commit(f *os.File, path string) error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}
