package apitest

import (
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Lines is what a server has logged. The zero value is ready for use.
type Lines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// Log returns a logger that writes to l, records of all levels.
func (l *Lines) Log() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write takes what the logger writes.
func (l *Lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// All returns the whole log.
func (l *Lines) All() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often text is in the log.
func (l *Lines) Count(text string) int { return strings.Count(l.All(), text) }

// Wait returns when the log matches, which it does before the test's deadline.
func (l *Lines) Wait(t testing.TB, expression string) {
	t.Helper()
	for re := regexp.MustCompile(expression); !re.MatchString(l.All()); {
		select {
		case <-t.Context().Done():
			t.Fatalf("no %s in\n%s", expression, l.All())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
