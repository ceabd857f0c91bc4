package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// asHolder makes the test binary a process that has the database named there open until
// its standard input ends.
const asHolder = "PLINTH_TEST_HOLD"

func TestMain(m *testing.M) {
	path := os.Getenv(asHolder)
	if path == "" {
		os.Exit(m.Run())
	}
	l, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := l.Close(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// hold opens the database in another process and returns what that says: "open", or why
// not. The process ends with the test.
func hold(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asHolder+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the other process said %q: %v", line, err)
	}
	return strings.TrimSpace(line)
}

// TestOneProcess opens one database in two processes, by all names that a file can have.
func TestOneProcess(t *testing.T) {
	for name, rename := range map[string]func(t *testing.T, path string) string{
		"same name": func(_ *testing.T, path string) string { return path },
		"symbolic link": func(t *testing.T, path string) string {
			link := filepath.Join(t.TempDir(), "link.db")
			must(t, os.Symlink(path, link))
			return link
		},
		"hard link": func(t *testing.T, path string) string {
			link := filepath.Join(filepath.Dir(path), "link.db")
			must(t, os.Link(path, link))
			return link
		},
		"removed lock file": func(t *testing.T, path string) string {
			must(t, os.Remove(path+".lock"))
			return path
		},
		"bind mount of the file": func(t *testing.T, path string) string {
			target := filepath.Join(t.TempDir(), "mounted.db")
			must(t, os.WriteFile(target, nil, 0o600))
			bind(t, path, target)
			return target
		},
		"bind mount of the directory": func(t *testing.T, path string) string {
			target := t.TempDir()
			must(t, os.Remove(path+".lock"))
			bind(t, filepath.Dir(path), target)
			return filepath.Join(target, filepath.Base(path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.db")
			l := open(t, Options{Path: path})
			write(t, l, "/a")
			other := rename(t, path)
			if said := hold(t, other); !strings.Contains(said, "another plinth is running") {
				t.Errorf("a second process said %q", said)
			}
			if _, err := Open(context.Background(), Options{Path: other}); !errors.Is(err, errRunning) {
				t.Errorf("a second open in this process: %v", err)
			}
			write(t, l, "/b")
		})
	}
}

// TestOneProcessCopy: a copy in another place is another database.
func TestOneProcessCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l := open(t, Options{Path: path})
	write(t, l, "/a")
	image := crash(t, path)
	if said := hold(t, image); said != "open" {
		t.Errorf("a process on the copy said %q", said)
	}
	write(t, l, "/b")
}

// TestOneProcessEnd: when a process has closed the database another may open it.
func TestOneProcessEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l, err := Open(context.Background(), Options{Path: path})
	must(t, err)
	must(t, l.Close())
	if said := hold(t, path); said != "open" {
		t.Fatalf("the next process said %q", said)
	}
	if _, err := Open(context.Background(), Options{Path: path}); !errors.Is(err, errRunning) {
		t.Errorf("opened beside it: %v", err)
	}
}

// TestOneProcessStarts closes the database while another process is started, which has copies of all
// descriptors until it runs its program. They hold nothing.
func TestOneProcessStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	l, err := Open(context.Background(), Options{Path: path})
	must(t, err)
	for _, f := range []*os.File{l.lock, l.guard.file} {
		inherited, err := syscall.Dup(int(f.Fd()))
		must(t, err)
		defer syscall.Close(inherited)
	}
	must(t, l.Close())
	l, err = Open(context.Background(), Options{Path: path})
	must(t, err)
	must(t, l.Close())
}

func TestLockError(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EAGAIN: "another plinth is running",
		syscall.EACCES: "another plinth is running",
		syscall.ENOLCK: "no file locks",
		syscall.ENOSYS: "no file locks",
		syscall.EIO:    "lock /x.db: input/output error",
	} {
		if err := lockError("/x.db", errno); !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

func bind(t *testing.T, from, to string) {
	t.Helper()
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("LOUD: not tested, because mounting is not permitted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(to, syscall.MNT_DETACH); err != nil && err != syscall.EINVAL { // the test may have done it
			t.Error(err)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write appends one change, which must be stored.
func write(t testing.TB, l *Log, key string) {
	t.Helper()
	a, err := l.Append(context.Background(), []changelog.Change{{Key: key, Value: []byte(`{"of":"` + key + `"}`)}})
	if err != nil || a.Results[0].Revision == 0 {
		t.Fatalf("write %s: %+v, %v", key, a, err)
	}
}

// crash returns a copy of the files as they would be if the process were killed now.
func crash(t testing.TB, path string) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "p.db")
	for _, suffix := range []string{"", "-wal"} {
		copyFile(t, path+suffix, image+suffix)
	}
	return image
}

// copyFile reads with another process: one that opens a database's file itself and closes it
// ends the locks that SQLite has on it.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %s", out)
	}
}
