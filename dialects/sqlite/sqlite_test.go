package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
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

func TestAppendAndRead(t *testing.T) {
	for name, path := range map[string]string{"file": filepath.Join(t.TempDir(), "new", "a b?#%.db"), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			l := open(t, Options{Path: path})
			ctx := context.Background()
			a, err := l.Append(ctx, []sqlstore.Change{{Key: "/a", Value: []byte("1")}, {Key: "/b", Expect: 7, Value: []byte("2")}})
			if err != nil {
				t.Fatal(err)
			}
			if a.Results[0].Revision != 1 || a.Results[1].Revision != 0 {
				t.Fatalf("results %+v", a.Results)
			}
			rows, err := l.State(ctx, "/", "0", 1, 10)
			if err != nil || len(rows) != 1 || rows[0].Key != "/a" || string(rows[0].Value) != "1" {
				t.Fatalf("state %+v, %v", rows, err)
			}
			if err := l.Reclaim(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
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
