package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// putRaw writes one raw key, or its deletion.
func putRaw(t *testing.T, l *Log, key string, value []byte, deleted bool) (revision int64, err error) {
	t.Helper()
	err = l.Transact(t.Context(), changelog.Ask{}, func(f *changelog.Found) (d changelog.Decision, err error) {
		revision, _ = changelog.Split(f.Revision)
		revision++
		id := changelog.FirstID(revision)
		d.Rows = []changelog.Row{{Revision: id, Key: key, CreateRevision: id, Deleted: deleted, At: f.At, Value: value, Version: 1}}
		return d, nil
	})
	return revision, err
}

// TestTransactOnFullDisk fills a disk with puts. Then deletes and leases are still taken.
func TestTransactOnFullDisk(t *testing.T) {
	dir := smallDisk(t, "64m")
	l := open(t, Options{Path: filepath.Join(dir, "p.db"), Reserve: 4 << 20, Kind: changelog.KindEtcd})
	l.lookAtDisk(t.Context(), false) // makes the reserve
	value := bytes.Repeat([]byte{'x'}, 100_000)
	var err error
	n := 0
	for ; err == nil; n++ {
		_, err = putRaw(t, l, fmt.Sprintf("/k%04d", n), value, false)
	}
	if !errors.Is(err, changelog.ErrFull) || !l.disk.hasReserve() {
		t.Fatalf("refused with %v; reserve: %v", err, l.disk.hasReserve())
	}
	if _, err := putRaw(t, l, "/small", nil, false); !errors.Is(err, changelog.ErrFull) {
		t.Errorf("a small key on a full disk: %v", err)
	}
	for i := range n - 1 {
		if _, err := putRaw(t, l, fmt.Sprintf("/k%04d", i), nil, true); err != nil {
			t.Fatalf("delete %d on a full disk: %v", i, err)
		}
	}
	err = l.Transact(t.Context(), changelog.Ask{}, func(f *changelog.Found) (d changelog.Decision, err error) {
		d.Revoke = []int64{1}
		return d, nil
	})
	if err != nil {
		t.Errorf("revoke on a full disk: %v", err)
	}
	for swept := int64(-1); ; {
		c, err := l.Compact(t.Context(), 1<<60, 100, nil)
		must(t, err)
		if c.Swept == swept {
			break
		}
		swept = c.Swept
	}
	must(t, l.Reclaim(t.Context()))
	l.lookAtDisk(t.Context(), true)
	if _, err := putRaw(t, l, "/after", value, false); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestTransactSetBack: revisions that were acknowledged and are gone must not be used again.
func TestTransactSetBack(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "p.db"), Kind: changelog.KindEtcd})
	for range 3 {
		_, err := putRaw(t, l, "/a", []byte("1"), false)
		must(t, err)
	}
	must(t, l.use(t.Context(), func(w *writer) error {
		_, err := w.exec(`DELETE FROM log WHERE id >= ?`, changelog.FirstID(2))
		return err
	}))
	for range 2 {
		if _, err := putRaw(t, l, "/a", []byte("2"), false); !errors.Is(err, errSetBack) || !errors.Is(err, changelog.ErrUnavailable) {
			t.Errorf("after the rows went: %v", err)
		}
	}
}
