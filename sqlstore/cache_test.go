package sqlstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestCache wants a database that is larger than the cache to be served as others are.
func TestCache(t *testing.T) {
	dsn := fileDSN(t)
	const limit = 20 << 10
	s := openRaw(t, dsn, Options{CacheBytes: limit})
	value := func(i int) string { return fmt.Sprintf("%04d", i) + strings.Repeat("x", 1000) }
	for i := range 200 {
		putRaw(t, s, fmt.Sprintf("k%04d", i), value(i))
	}
	check := func() {
		t.Helper()
		for range 2 {
			var entries []*Entry
			if err := s.Current("").Scan(t.Context(), "", changelog.End, func(e *Entry) bool { entries = append(entries, e); return true }); err != nil {
				t.Fatal(err)
			}
			values, err := s.Keys().Values(t.Context(), entries)
			if err != nil || len(values) != 200 {
				t.Fatalf("%d values, %v", len(values), err)
			}
			for i, v := range values {
				if string(v) != value(i) {
					t.Fatalf("value %d is %.10s", i, v)
				}
			}
		}
		if n := s.Cached(); n > limit {
			t.Errorf("%d bytes are in memory, at most %d are allowed", n, limit)
		}
	}
	check()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openRaw(t, dsn, Options{CacheBytes: limit})
	check()
	compared := 0
	o := do(t, s, func(tx *Tx) error { // needs values that are only in the log
		compared = 0
		tx.Ascend("", changelog.End, func(e *Entry) bool {
			if v, ok := tx.Value(e); ok && len(v) == 1004 {
				compared++
			}
			return true
		})
		if compared == 200 {
			tx.Put("all", []byte("seen"), 0)
		}
		return nil
	})
	if compared != 200 || o.Revision != 202 {
		t.Errorf("compared %d values, revision %d", compared, o.Revision)
	}
}

// TestCacheForgets wants values that were overwritten to leave memory.
func TestCacheForgets(t *testing.T) {
	s := openRaw(t, "sqlite://:memory:", Options{CacheBytes: 1 << 20, WindowBytes: 1 << 10})
	for i := range 500 {
		if _, err := s.Keys().Do(context.Background(), Transaction{Run: func(tx *Tx) error {
			tx.Put("k", []byte(strings.Repeat("x", 1000)), 0)
			return nil
		}}); err != nil {
			t.Fatal(err, i)
		}
	}
	if n := s.Cached(); n > 2000 {
		t.Errorf("%d bytes are cached for one key", n)
	}
	if n := s.CacheRing(); n > 200 {
		t.Errorf("%d entries are held for one key", n)
	}
}
