package pki

import (
	"fmt"
	"os"
	"path/filepath"
)

// privateDir makes dir if it is missing, and removes the permissions of everybody but its
// owner.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return private(dir, 0o700)
}

// private removes from path all permissions that most does not have.
func private(path string, most os.FileMode) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&^most == 0 {
		return nil
	}
	if err := os.Chmod(path, info.Mode().Perm()&most); err != nil {
		return fmt.Errorf("close %s to others: %w", path, err)
	}
	return nil
}

// writeFile replaces path as a whole: a reader sees the old content or the new, also
// after a crash.
func writeFile(path string, content []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := keepOwner(f, path); err != nil {
		f.Close()
		return err
	}
	if err := fill(f, content, mode); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// stamp changes when base.crt or base.key does.
func stamp(base string) (text string) {
	for _, end := range []string{".crt", ".key"} {
		if info, err := os.Stat(base + end); err == nil {
			text += fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size(), " ")
		}
	}
	return text
}

func fill(f *os.File, content []byte, mode os.FileMode) error {
	if err := f.Chmod(mode); err != nil {
		f.Close()
		return err
	}
	if _, err := f.Write(content); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
