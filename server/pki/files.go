package pki

import (
	"fmt"
	"os"
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

// stamp changes when base.crt or base.key does.
func stamp(base string) (text string) {
	for _, end := range []string{".crt", ".key"} {
		if info, err := os.Stat(base + end); err == nil {
			text += fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size(), " ")
		}
	}
	return text
}
