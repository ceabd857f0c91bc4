package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestPlace takes the files of an open database away in all ways, and puts them back.
func TestPlace(t *testing.T) {
	for name, test := range map[string]struct {
		take func(t *testing.T, path string)
		back func(t *testing.T, path string) // nil: it cannot come back
		want string
	}{
		"moved": {
			take: func(t *testing.T, path string) { must(t, os.Rename(path, path+".moved")) },
			back: func(t *testing.T, path string) { must(t, os.Rename(path+".moved", path)) },
			want: "is not there any more",
		},
		"deleted": {
			take: func(t *testing.T, path string) { must(t, os.Remove(path)) },
			want: "is not there any more",
		},
		"replaced": {
			take: func(t *testing.T, path string) {
				must(t, os.Rename(path, path+".moved"))
				must(t, os.WriteFile(path, nil, 0o600))
			},
			back: func(t *testing.T, path string) { must(t, os.Rename(path+".moved", path)) },
			want: "is another file than the one that was opened",
		},
		"overwritten": {
			take: func(t *testing.T, path string) { copyFile(t, path+".older", path) },
			want: "was overwritten while it was open",
		},
		"its log deleted": {
			take: func(t *testing.T, path string) { must(t, os.Remove(path+"-wal")) },
			want: "-wal is not there any more",
		},
		"its directory moved": {
			take: func(t *testing.T, path string) { must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".moved")) },
			back: func(t *testing.T, path string) { must(t, os.Rename(filepath.Dir(path)+".moved", filepath.Dir(path))) },
			want: "is not there any more",
		},
		"covered by a mount": {
			take: func(t *testing.T, path string) { bind(t, t.TempDir(), filepath.Dir(path)) },
			back: func(t *testing.T, path string) { must(t, syscall.Unmount(filepath.Dir(path), syscall.MNT_DETACH)) },
			want: "is not there any more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dir", "p.db")
			l, err := Open(context.Background(), Options{Path: path})
			must(t, err)
			write(t, l, "/a")
			if name == "overwritten" {
				backupTo(t, path, path+".older")
			}
			ctx, cancel := context.WithCancel(context.Background())
			followed := make(chan struct{})
			go func() { defer close(followed); l.Follow(ctx, changelog.Follower{Hint: func(int64) {}}) }()
			t.Cleanup(func() { cancel(); <-followed; l.Close() })

			test.take(t, path)
			if name != "overwritten" { // which only the watch sees
				_, err = l.Append(ctx, []changelog.Change{{Key: "/lost", Value: []byte("1")}})
				if !errors.Is(err, changelog.ErrUnknown) && !errors.Is(err, changelog.ErrUnavailable) {
					t.Errorf("the first write after that: %v", err)
				}
			}
			until(t, func() bool { return l.Condition() != nil })
			_, err = l.Append(ctx, []changelog.Change{{Key: "/b", Value: []byte("1")}})
			if !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrUnknown) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("write: %v", err)
			}
			if test.back == nil {
				return
			}
			test.back(t, path)
			until(t, func() bool { return l.Condition() == nil })
			write(t, l, "/c")
		})
	}
}

// TestReadersReplaced puts another log in the place of an open one: a connection that is
// opened afterwards does not read it.
func TestReadersReplaced(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.db")
	o := open(t, Options{Path: other})
	for _, key := range []string{"/a", "/b", "/c"} {
		write(t, o, key)
	}
	must(t, o.Close())
	path := filepath.Join(dir, "p.db")
	l := open(t, Options{Path: path})
	write(t, l, "/a")
	want, err := l.Head(t.Context())
	must(t, err)
	must(t, os.Rename(path, path+".moved"))
	must(t, os.Rename(other, path))
	l.reads.SetMaxIdleConns(-1) // closes the connections
	if head, err := l.Head(t.Context()); !errors.Is(err, changelog.ErrUnavailable) || !strings.Contains(err.Error(), "is another file") {
		t.Errorf("head %v, %v", head, err)
	}
	must(t, os.Rename(path, other))
	must(t, os.Rename(path+".moved", path))
	if head, err := l.Head(t.Context()); err != nil || head != want {
		t.Errorf("with the file back: head %v, %v, want %v", head, err, want)
	}
}

// TestOverwrittenStays: a file that was copied over an open one is not changed by
// the end of the process.
func TestOverwrittenStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l, err := Open(context.Background(), Options{Path: path})
	must(t, err)
	write(t, l, "/a")
	older := backupTo(t, path, path+".older")
	write(t, l, "/b")
	copyFile(t, older, path)
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "overwritten") {
		t.Errorf("close: %v", err)
	}
	same(t, older, path)
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	must(t, err)
	y, err := os.ReadFile(b)
	must(t, err)
	if string(x) != string(y) {
		t.Errorf("%s and %s differ", a, b)
	}
}

// until waits for something that happens soon.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come to that")
		}
	}
}

// TestSetBack restores an older state into an open database, as sqlite3's .restore does. No
// revision is given twice: the next write is refused, and all others until a restart.
func TestSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l := open(t, Options{Path: path})
	write(t, l, "/a")
	backup := backupTo(t, path, path+".backup")
	write(t, l, "/b")
	byHand(t, path, `DELETE FROM log WHERE id > 1; UPDATE sqlite_sequence SET seq = 1 WHERE name = 'log'`)
	for range 2 {
		_, err := l.Append(context.Background(), []changelog.Change{{Key: "/c", Value: []byte("1")}})
		if !errors.Is(err, changelog.ErrUnavailable) || !errors.Is(err, changelog.ErrRestart) {
			t.Errorf("append: %v", err)
		}
	}
	if err := l.Condition(); !errors.Is(err, errSetBack) {
		t.Errorf("condition: %v", err)
	}
	if got := keys(t, path); got != "/a" || keys(t, backup) != "/a" {
		t.Errorf("keys %s", got)
	}
}
