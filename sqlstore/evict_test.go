package sqlstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// large is an object of about a kibibyte.
func large(i int) Change {
	key := fmt.Sprintf("%sns/%04d", maps, i)
	return Change{Key: key, Value: fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%04d"},"data":{"n":%q}}`, i, strings.Repeat("x", 1000))}
}

// TestEvictBound writes ten times as much as may stay in memory, and starts with it.
func TestEvictBound(t *testing.T) {
	const limit, n = 300_000, 2000
	dsn := fileDSN(t)
	s, err := object.Open(t.Context(), openLog(t, dsn), Options{StateBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		commit(t, s, large(i))
	}
	bounded := func(s *Store) bool { st := s.Stats(); return st.StateBytes <= limit || st.Away == n }
	until(t, "values have left memory", func() bool { return bounded(s) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ limit, away int }{{0, 0}, {1, n}, {1_000_000, n / 2}, {10_000_000, 0}} {
		s, err := object.Open(t.Context(), openLog(t, dsn), Options{StateBytes: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		until(t, fmt.Sprintf("%d values of %d bytes are away", c.away, c.limit), func() bool { return s.Stats().Away >= c.away })
		if st := s.Stats(); st.Entries[maps] != n || c.away == 0 && st.Away > 0 {
			t.Errorf("at most %d bytes: %d of %d objects are away", c.limit, st.Away, st.Entries[maps])
		}
		d := digest(t, s)
		if d.Objects != n {
			t.Errorf("the digest has %d objects", d.Objects)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEvictLeastUsed expects that what was used last stays.
func TestEvictLeastUsed(t *testing.T) {
	s := newStore(t, Options{StateBytes: 900_000})
	for i := range 200 {
		create(t, s, fmt.Sprintf("%sns/%d", pods, i))
	}
	used := func() int64 {
		before := s.Stats().ValueReads
		from, to := changelog.RangeOf(pods)
		if err := s.Current(pods).Scan(t.Context(), from, to, func(*Entry) bool { return true }); err != nil {
			t.Fatal(err)
		}
		return s.Stats().ValueReads - before
	}
	for i := range 1500 {
		commit(t, s, large(i))
		if read := used(); read > 0 {
			t.Fatalf("%d values of a resource that is used all the time were read from the log", read)
		}
	}
	until(t, "values have left memory", func() bool { return s.Stats().Away > 0 })
}

// duringReads calls a function during each read of values.
type duringReads struct {
	changelog.Log
	call atomic.Pointer[func()]
}

func (l *duringReads) Values(ctx context.Context, ids []int64) (map[int64][]byte, error) {
	if call := l.call.Load(); call != nil {
		(*call)()
	}
	return l.Log.Values(ctx, ids)
}

// TestEvictAfterIndex writes while an index is built, which keeps all values of the resource in memory. They leave
// it when the index is there.
func TestEvictAfterIndex(t *testing.T) {
	log := &duringReads{Log: openLog(t, fileDSN(t))}
	s := openStore(t, log, nothingStays)
	for i := range 1100 {
		create(t, s, fmt.Sprintf("%sns/%04d", maps, i))
	}
	until(t, "all values have left memory", func() bool { s.EvictNow(); return s.Stats().Away == 1100 })
	n := 0
	write := func() { create(t, s, fmt.Sprintf("%sother/%04d", maps, n)); n++ }
	log.call.Store(&write)
	from, to := changelog.RangeOf(maps)
	where := []Predicate{{Attribute: object.Label("a"), Terms: []string{"b"}}}
	if err := s.Current(maps).Select(t.Context(), from, to, where, func(*Entry) bool { return true }); err != nil {
		t.Fatal(err)
	}
	log.call.Store(nil)
	if s.Stats().Indexes != 1 || n == 0 {
		t.Fatalf("there are %d indexes, and %d writes during reads", s.Stats().Indexes, n)
	}
	until(t, "all values have left memory again", func() bool { return s.Stats().Away == 1100+n })
}

// TestEvictScanKeeps expects that a scan leaves in memory what has room there, and no more.
func TestEvictScanKeeps(t *testing.T) {
	dsn := fileDSN(t)
	s, err := object.Open(t.Context(), openLog(t, dsn), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		commit(t, s, large(i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const limit = 300_000
	s = openStore(t, openLog(t, dsn), Options{StateBytes: limit})
	from, to := changelog.RangeOf(maps)
	for range 3 {
		if err := s.Current(maps).Scan(t.Context(), from, to, func(*Entry) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Stats(); st.StateBytes > limit || st.StateBytes < limit*3/4 {
		t.Errorf("%d bytes are in memory of at most %d", st.StateBytes, limit)
	}
}
