package measure

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDiskUse(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"a": 1000, "sub/b": 234} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := DiskUse(dir); got != 1234 || err != nil {
		t.Errorf("%d bytes, %v", got, err)
	}
	if _, err := DiskUse(filepath.Join(dir, "absent")); err == nil {
		t.Error("a directory that is not there has a size")
	}
}
