package sqlstore_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestPastBound has more old versions than there is room for: the youngest stay.
func TestPastBound(t *testing.T) {
	const most = 4000
	dsn := fileDSN(t)
	o := Options{History: 20 * time.Millisecond, CompactEvery: 5 * time.Millisecond, Retention: keeping(t, "*=1h"), RetentionBytes: most}
	s := openStore(t, openLog(t, dsn), o)
	key := maps + "ns/a"
	e := create(t, s, key)
	first := e.Revision
	for i := range 200 {
		e = commit(t, s, Change{Key: key, Expect: e.Revision, Value: value(key, i)})
	}
	create(t, s, pods+"ns/last")
	var size changelog.Size
	waitFor(t, "the bound", func() bool {
		var err error
		if size, err = s.Source().Size(t.Context()); err != nil {
			t.Fatal(err)
		}
		return size.Rows <= 3 && size.PastData > 0 && size.PastData <= most
	})
	if size.Past == 0 || size.PastData < most/2 || s.Stats().KeptBound != most {
		t.Errorf("%+v; the bound is %d", size, s.Stats().KeptBound)
	}
	if _, err := s.Past(t.Context(), key, key+"\x00", first, 1); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("the first version: %v", err)
	}
	rows, err := s.Past(t.Context(), key, key+"\x00", e.Revision-1, 1)
	if err != nil || len(rows) != 1 || rows[0].Revision != e.Revision-1 {
		t.Errorf("the youngest old version: %v, %v", rows, err)
	}
	reach, err := s.Reach(t.Context(), maps)
	if err != nil || !reach.Kept || reach.Most != most || reach.Revision <= first || reach.Revision >= s.Floor() || reach.Since == 0 {
		t.Errorf("reach %+v with floor %d, %v", reach, s.Floor(), err)
	}
}

// TestPastBoundByShare: what is allowed grows with the objects, and is never less than LeastBound.
func TestPastBoundByShare(t *testing.T) {
	s := openStore(t, openLog(t, "sqlite://:memory:"), Options{
		History: 20 * time.Millisecond, CompactEvery: 5 * time.Millisecond, Retention: keeping(t, "*=1h"), RetentionBytes: BoundByShare})
	create(t, s, maps+"ns/a")
	waitFor(t, "the bound", func() bool { return s.Stats().KeptBound == LeastBound })
	for objects, want := range map[int64]int64{0: LeastBound, 10 * LeastBound: LeastBound, 20 * LeastBound: 2 * LeastBound} {
		if got := ShareOf(objects); got != want {
			t.Errorf("beside %d bytes of objects %d are allowed, want %d", objects, got, want)
		}
	}
}
