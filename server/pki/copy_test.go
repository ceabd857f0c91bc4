package pki

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopyAuthority starts a second server's certificates from a copy of the first one's authority, which cannot be written, as
// that of a Secret.
func TestCopyAuthority(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "data", "pki")
	if _, err := CopyAuthority(from, to); !errors.Is(err, ErrNoAuthority) || exists(to) {
		t.Errorf("from nothing: %v; the directory was made: %v", err, exists(to))
	}
	first := mustOpen(t, from, nil)
	for _, name := range []string{"ca.crt", "ca.key"} {
		if err := os.Chmod(filepath.Join(from, name), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	if copied, err := CopyAuthority(from, to); err != nil || !copied {
		t.Fatalf("copied %v: %v", copied, err)
	}
	if info, err := os.Stat(filepath.Join(to, "ca.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v: %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(from, "ca.key")); err != nil || info.Mode().Perm() != 0o440 {
		t.Errorf("the key that was read is %v: %v", info, err)
	}
	if second := mustOpen(t, to, nil); second.Fingerprint() != first.Fingerprint() {
		t.Errorf("the copy is %s, want %s", second.Fingerprint(), first.Fingerprint())
	}
	if copied, err := CopyAuthority(from, to); err != nil || copied {
		t.Errorf("again: copied %v: %v", copied, err)
	}
	other := filepath.Join(t.TempDir(), "other")
	mustOpen(t, other, nil)
	if _, err := CopyAuthority(other, to); !errors.Is(err, ErrOtherAuthority) {
		t.Errorf("another authority: %v", err)
	}
	if err := os.Remove(filepath.Join(from, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := CopyAuthority(from, filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "ca.key") {
		t.Errorf("without its key: %v", err)
	}
}
