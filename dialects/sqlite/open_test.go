package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func open(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestSecondOpenIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	open(t, Options{Path: path})
	_, err := Open(context.Background(), Options{Path: path})
	if err == nil || !strings.Contains(err.Error(), "another plinth is running") {
		t.Fatalf("second open: %v", err)
	}
}

func BenchmarkOpenNew(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		l, err := Open(context.Background(), Options{Path: filepath.Join(dir, strings.Repeat("x", 1+i%50)+string(rune('a'+i/50%26))+string(rune('a'+i/1300))+".db")})
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}

func BenchmarkOpenMemory(b *testing.B) {
	for b.Loop() {
		l, err := Open(context.Background(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}

// TestHalfMadeFile leaves what a crash in the middle of the very first start does.
func TestHalfMadeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	for name, content := range map[string]string{path: "", path + ".new": "not a database"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := open(t, Options{Path: path})
	if len(l.ClusterID()) != 36 {
		t.Errorf("cluster id %q", l.ClusterID())
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 4 { // with the log, its index and the lock
		t.Errorf("files %v, %v", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
	}
}

// TestOneFileTwoNames: the lock is the file's, not the name's.
func TestOneFileTwoNames(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "p.db"), filepath.Join(dir, "link.db")
	open(t, Options{Path: path})
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if l, err := Open(context.Background(), Options{Path: link}); err == nil {
		l.Close()
		t.Error("opened under a second name")
	}
}

// TestManyInMemory: each Open has a database of its own.
func TestManyInMemory(t *testing.T) {
	for range 100 {
		l := open(t, Options{})
		a, err := l.Append(context.Background(), []changelog.Change{{Key: "/a", Value: []byte("1")}})
		if err != nil || a.Head != 0 || a.Results[0].Revision != 1 {
			t.Fatalf("first append: %+v, %v", a, err)
		}
	}
}

// TestReadersClose closes all connections that read, as database/sql may at any time: the
// files stay where they are, also before the first write.
func TestReadersClose(t *testing.T) {
	for _, kind := range []changelog.Kind{changelog.KindAPI, changelog.KindEtcd} {
		path := filepath.Join(t.TempDir(), "p.db")
		for _, start := range []string{"new", "existing"} {
			l := open(t, Options{Path: path, Kind: kind})
			l.reads.SetMaxIdleConns(-1)
			if n := l.reads.Stats().OpenConnections; n != 0 {
				t.Fatalf("%d connections that read are open", n)
			}
			if err := l.place.look(); err != nil {
				t.Errorf("%s, %s file: %v", kind, start, err)
			}
			if _, err := l.Head(t.Context()); err != nil {
				t.Errorf("%s, %s file: %v", kind, start, err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
