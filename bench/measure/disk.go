package measure

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// DiskUse returns the bytes of all files in a directory. Files may come and go meanwhile.
func DiskUse(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes, err
}
