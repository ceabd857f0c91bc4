package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestFull lets SQLite itself refuse to grow, as a full disk does. What was refused must
// not be there, and when there is room again the log goes on.
func TestFull(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "p.db")})
	ctx := context.Background()
	limit(t, l, 200)
	value := bytes.Repeat([]byte{'x'}, 10_000)
	written := int64(0)
	var err error
	for err == nil && written < 1000 {
		if _, err = l.Append(ctx, []changelog.Change{{Key: fmt.Sprint(written), Value: value}}); err == nil {
			written++
		}
	}
	if !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrUnknown) {
		t.Fatalf("append to a full database: %v", err)
	}
	if h, err := l.Head(ctx); err != nil || h.Revision != written {
		t.Errorf("head %+v, %v after %d were acknowledged", h, err, written)
	}
	limit(t, l, 1<<30)
	a, err := l.Append(ctx, []changelog.Change{{Key: "after", Value: value}})
	if err != nil || a.Results[0].Revision != written+1 {
		t.Errorf("append with room again: %+v, %v", a, err)
	}
}

func limit(t *testing.T, l *Log, pages int) {
	t.Helper()
	err := l.use(context.Background(), func(w *writer) error {
		return w.drain(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadOnly makes the writer's connection refuse writes.
func TestReadOnly(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "p.db")})
	readOnly := func(on int) {
		err := l.use(context.Background(), func(w *writer) error { return w.drain(fmt.Sprintf(`PRAGMA query_only = %d`, on)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	change := []changelog.Change{{Key: "/a", Value: []byte("1")}}
	readOnly(1)
	if _, err := l.Append(context.Background(), change); !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrUnknown) {
		t.Errorf("append to a read-only database: %v", err)
	}
	readOnly(0)
	if a, err := l.Append(context.Background(), change); err != nil || a.Results[0].Revision != 1 {
		t.Errorf("append after that: %+v, %v", a, err)
	}
}

// TestCommitRefused lets SQLite roll back at COMMIT. The revisions drawn until then were not acknowledged,
// so the log goes on without them, also if the next transaction draws none.
func TestCommitRefused(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "p.db")})
	ctx := context.Background()
	onCommit := func(hook func() int) {
		must(t, l.use(ctx, func(w *writer) error { w.conn.RegisterCommitHook(hook); return nil }))
	}
	onCommit(func() int { return 1 })
	if a, err := l.Append(ctx, []changelog.Change{{Key: "/a", Value: []byte("1")}}); err == nil {
		t.Fatalf("append with a COMMIT that fails: %+v", a)
	}
	onCommit(nil)
	if _, err := l.Compact(ctx, 1, 100, nil); err != nil {
		t.Fatal(err)
	}
	if a, err := l.Append(ctx, []changelog.Change{{Key: "/a", Value: []byte("1")}}); err != nil || a.Results[0].Revision != 1 {
		t.Errorf("append after that: %+v, %v", a, err)
	}
}
