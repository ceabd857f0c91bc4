package sqlstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// records keeps what a Store logs, level and message of each record on a line.
type records struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *records) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return a
		}
		return slog.Attr{}
	}}))
}

// await returns when the records are those wanted, each with its level and the beginning
// of its message.
func (r *records) await(t *testing.T, want ...string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		got := strings.FieldsFunc(r.out.String(), func(c rune) bool { return c == '\n' })
		r.mu.Unlock()
		if len(got) >= len(want) || time.Now().After(end) {
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
					t.Fatalf("records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
			return
		}
	}
}

// awaitText returns when text was logged.
func (r *records) awaitText(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		got := r.out.String()
		r.mu.Unlock()
		if strings.Contains(got, text) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("logged %s; want %s", got, text)
		}
	}
}

const (
	lostRecord  = `level=ERROR msg="database cannot be used;`
	backRecord  = `level=INFO msg="database can be used again"`
	fullRecord  = `level=ERROR msg="only deletes are taken"`
	emptyRecord = `level=INFO msg="there is room for the database again:`
)

// A database file that is moved away is logged once, whether or not somebody writes, and
// so is its return.
func TestLogOfLostFile(t *testing.T) {
	var logged records
	path := filepath.Join(t.TempDir(), "p.db")
	s := openStore(t, openLog(t, "sqlite://"+path), Options{Log: logged.logger()})
	create(t, s, maps+"ns/a")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	logged.await(t, lostRecord)
	for i := range 3 {
		if _, err := s.Commit(t.Context(), Change{Key: fmt.Sprintf("%sns/%d", maps, i), Value: value(maps, 0)}); !errors.Is(err, changelog.ErrUnavailable) {
			t.Errorf("commit without the file: %v", err)
		}
	}
	time.Sleep(1200 * time.Millisecond) // the Store has looked again
	logged.await(t, lostRecord)
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	logged.await(t, lostRecord, backRecord)
	create(t, s, maps+"ns/b")
}

// conditionLog is a log with a Condition that the test sets.
type conditionLog struct {
	changelog.Log
	condition atomic.Pointer[error]
}

func (l *conditionLog) Condition() error {
	if err := l.condition.Load(); err != nil {
		return *err
	}
	return nil
}

// A disk that is nearly full is logged once, and so is that it has room again.
func TestLogOfFullDisk(t *testing.T) {
	var logged records
	log := &conditionLog{Log: openLog(t, fileDSN(t))}
	s := openStore(t, log, Options{Log: logged.logger()})
	full := fmt.Errorf("%w: 3 MiB are free", changelog.ErrFull)
	log.condition.Store(&full)
	logged.await(t, fullRecord)
	if _, err := s.Commit(t.Context(), Change{Key: maps + "ns/a", Value: value(maps, 0)}); !errors.Is(err, changelog.ErrFull) {
		t.Errorf("commit on a full disk: %v", err)
	}
	log.condition.Store(nil)
	logged.await(t, fullRecord, emptyRecord)
	create(t, s, maps+"ns/a")
}
