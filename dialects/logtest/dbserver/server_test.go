package dbserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestServers starts each server twice: the second one's data is a copy of what the first one began with.
func TestServers(t *testing.T) {
	kept := t.TempDir()
	for _, dir := range []string{filepath.Dir(kept), kept} {
		if err := os.Chmod(dir, 0o777); err != nil { // servers do not run as root
			t.Fatal(err)
		}
	}
	t.Setenv(KeepEnv, kept)
	for name, start := range map[string]func(bool) (*Server, error){"postgres": StartPostgres, "mariadb": StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			s, err := start(false)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			copied, err := start(false)
			if err != nil {
				t.Fatal(err)
			}
			if err := copied.Close(); err != nil {
				t.Fatal(err)
			}
			if made, err := os.ReadDir(kept); err != nil || len(made) != 1 || made[0].Name() != name {
				t.Errorf("%v is kept, %v", made, err)
			}
			if err := os.RemoveAll(filepath.Join(kept, name)); err != nil {
				t.Fatal(err)
			}
			if err := s.Freeze(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			if err := s.kind.ping(ctx, s.DSN("")); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("ping of a frozen server: %v", err)
			}
			if err := s.Thaw(); err != nil {
				t.Fatal(err)
			}
			if err := s.kind.ping(context.Background(), s.DSN("")); err != nil {
				t.Fatal(err)
			}
			for _, end := range []func(){s.Stop, s.Kill} {
				end()
				if err := s.kind.ping(context.Background(), s.DSN("")); err == nil {
					t.Fatal("it answers after its end")
				}
				if err := s.Start(); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
				t.Errorf("directory is still there: %v", err)
			}
		})
	}
}
