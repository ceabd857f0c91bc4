package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestCheckpoint wants the write-ahead log to be copied into the file before a commit would have to.
func TestCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plinth.db")
	l, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { l.Follow(ctx, changelog.Follower{Hint: func(int64) {}}) })
	defer func() {
		cancel()
		following.Wait()
		l.Close()
	}()
	const size, rows = 64 << 10, 80 // more than checkpointBytes, less than mostLogPages
	for i := range rows {
		change := changelog.Change{Key: "/registry/a/b/" + strconv.Itoa(i), Value: make([]byte, size)}
		if _, err := l.Append(t.Context(), []changelog.Change{change}); err != nil {
			t.Fatal(err)
		}
	}
	for range 600 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > checkpointBytes/2 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("nothing was copied into the file within a minute")
}

// TestCheckpointUnfollowed wants commits to bound the log where nobody follows it, as in a copy.
func TestCheckpointUnfollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plinth.db")
	l, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const size = 1 << 20
	for i := range 40 {
		change := changelog.Change{Key: "/registry/a/b/" + strconv.Itoa(i), Value: make([]byte, size)}
		if _, err := l.Append(t.Context(), []changelog.Change{change}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(mostLogPages<<12 + 2*size); info.Size() > most {
		t.Errorf("the log has %d bytes, at most %d are wanted", info.Size(), most)
	}
}
