package files

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

func (l *lines) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

// Two files that belong together are replaced one after the other, which nobody needs to know. A
// file that stays broken, or away, is told once, and so is its end. What was loaded stays.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	write(t, one, "1")
	write(t, two, "1")
	var mu sync.Mutex
	loaded := ""
	load := func() error {
		a, err := os.ReadFile(one)
		b, err2 := os.ReadFile(two)
		if err = errors.Join(err, err2); err == nil && string(a) != string(b) {
			err = errors.New("they do not belong together")
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			loaded = string(a)
		}
		return err
	}
	has := func(want string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return loaded == want
		}
	}
	var log lines
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() {
		Follow(ctx, slog.New(slog.NewTextHandler(&log, nil)), "pair", []string{one, two}, load)
	})
	told := func() bool { return log.count("good again") == log.count("cannot be used") } // the log is behind
	eventually(t, "they are loaded", has("1"))
	for tries := 1; ; tries++ {
		begun := time.Now()
		write(t, one, fmt.Sprint("2.", tries))
		time.Sleep(100 * time.Millisecond)
		write(t, two, fmt.Sprint("2.", tries))
		took := time.Since(begun)
		eventually(t, "they are loaded again", has(fmt.Sprint("2.", tries)))
		if log.count("cannot be used") == 0 {
			write(t, one, "2")
			write(t, two, "2")
			eventually(t, "they are loaded again", has("2"))
			eventually(t, "the log tells of all", told)
			break
		}
		if took < firstRetry || tries == 10 {
			t.Fatalf("the log tells of files that were on their way for %v", took)
		}
		eventually(t, "the log tells of all", told)
		log.clear() // a machine that stands still keeps them on their way for too long
	}
	log.clear()
	write(t, one, "broken")
	eventually(t, "the log tells of the broken file", func() bool { return log.count("cannot be used") == 1 })
	if err := os.Remove(one); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * firstRetry)
	if n := log.count("cannot be used"); n != 1 || !has("2")() {
		t.Errorf("told %d times, %s is loaded", n, loaded)
	}
	write(t, two, "3")
	write(t, one, "3")
	eventually(t, "a file that was away is loaded", has("3"))
	eventually(t, "the log tells of the end", func() bool { return log.count("good again") == 1 })
	cancel()
	following.Wait()
}
