package dbserver

import (
	"os"
	"path/filepath"
	"testing"
)

// TestScratch makes a directory in memory where there is room, and none where there is no such place.
func TestScratch(t *testing.T) {
	dir, remove, err := Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if roomy(sharedMemory) != (dir != "") {
		t.Errorf("the directory is %q", dir)
	}
	if dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); dir != "" && !os.IsNotExist(err) {
		t.Errorf("after its removal: %v", err)
	}

	had := sharedMemory
	defer func() { sharedMemory = had }()
	sharedMemory = filepath.Join(t.TempDir(), "none")
	if dir, _, err := Scratch(); dir != "" || err != nil {
		t.Errorf("%q, %v", dir, err)
	}
}
