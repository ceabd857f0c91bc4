package upstream_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/plinth-io/plinth/server/upstream"
)

// TestBadSnapshots has files that are no whole snapshot of an etcd 3.
func TestBadSnapshots(t *testing.T) {
	good := unpacked(t, "snapshot.db.gz")
	flipped := append([]byte(nil), good...)
	flipped[len(good)/2] ^= 1
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"cut off":            {good[:len(good)-1], "it has no checksum at its end: it is cut off"},
		"cut at a page":      {good[:len(good)/2/4096*4096], "it has no checksum at its end"},
		"short by some rows": {append(good[:8192:8192], good[len(good)-sha256.Size:]...), "its checksum is wrong"},
		"without its sum":    {good[:len(good)-sha256.Size], "it has no checksum"},
		"damaged":            {flipped, "its checksum is wrong"},
		"empty":              {[]byte{}, "it is no snapshot of an etcd"},
		"text":               {summed([]byte(strings.Repeat("etcd v2", 1024))), "it is no snapshot of an etcd"},
		"of zeros":           {summed(make([]byte, 16384)), "it is no snapshot of an etcd"},
		"of another program": {boltFile(t, "v1", ""), "it is no snapshot of an etcd"},
		"of etcd 4":          {boltFile(t, "key", "4.0.0"), "it is a snapshot of etcd 4.0.0"},
	} {
		if _, err := upstream.OpenSnapshot(t.Context(), snapshotFile(t, c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
	dir := t.TempDir()
	if _, err := upstream.OpenSnapshot(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "it is no snapshot") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := upstream.OpenSnapshot(t.Context(), dir+"/none.db"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
}

// summed appends the sum that a snapshot ends with.
func summed(content []byte) []byte {
	sum := sha256.Sum256(content)
	return append(content[:len(content):len(content)], sum[:]...)
}

// boltFile is a snapshot with one bucket and a version of etcd's storage.
func boltFile(t *testing.T, bucket, version string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bolt.db")
	db, err := bbolt.Open(file, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte(bucket)); err != nil {
			return err
		}
		meta, err := tx.CreateBucket([]byte("meta"))
		if err != nil {
			return err
		}
		return meta.Put([]byte("storageVersion"), []byte(version))
	}))
	must(t, db.Close())
	content, err := os.ReadFile(file)
	must(t, err)
	return summed(content)
}
