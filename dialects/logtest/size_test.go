package logtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestSize(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		empty, err := l.Size(t.Context())
		if err != nil || empty.Rows != 0 || empty.Bytes <= 0 {
			t.Errorf("empty: %+v, %v", empty, err)
		}
		fillForSize(t, l)
		full, err := l.Size(t.Context())
		for end := time.Now().Add(5 * time.Minute); db.name == "mariadb" && full.Bytes == empty.Bytes && time.Now().Before(end); {
			time.Sleep(100 * time.Millisecond) // its own count of pages is late
			full, err = l.Size(t.Context())
		}
		if err != nil || full.Rows != 201 || full.Bytes <= empty.Bytes {
			t.Errorf("of 201 rows: %+v after %+v, %v", full, empty, err)
		}
		if onDisk := db.name == "sqlite"; onDisk != (full.Free > 0) || !onDisk && full.Free != -1 {
			t.Errorf("free: %d", full.Free)
		}
	})
}

// fillForSize makes 200 objects of 1 kB, and deletes one.
func fillForSize(t *testing.T, l changelog.Log) {
	t.Helper()
	var batch []changelog.Change
	for i := range 200 {
		batch = append(batch, changelog.Change{Key: fmt.Sprintf("/registry/core/configmaps/a/%03d", i), Value: []byte(strings.Repeat("x", 1000))})
	}
	made, err := l.Append(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), []changelog.Change{{Key: batch[0].Key, Expect: made.Results[0].Revision, Delete: true, Value: batch[0].Value}})
	if err != nil {
		t.Fatal(err)
	}
}

// Only SQLite is on a file system that plinth sees.
func TestRoom(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		free, size := db.open(t).Room()
		if known := db.name == "sqlite"; known != (size > 0) || known != (free > 0) || free > size {
			t.Errorf("%d of %d bytes are free", free, size)
		}
	})
}
