package sqlstore_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestAtRevision(t *testing.T) {
	s := openRaw(t, "sqlite://:memory:", Options{History: -1})
	for n := range 5 { // revisions 2 to 6, each of two keys
		putRaw(t, s, "a", fmt.Sprint(n), fmt.Sprint("b", n), "")
		if n == 2 {
			s.Keep(s.Current(""))
		}
	}
	ctx := t.Context()
	for revision := int64(2); revision <= 5; revision++ {
		view, err := s.Keys().AtRevision(ctx, revision)
		if err != nil {
			t.Fatal(err)
		}
		e, err := view.Get(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		n, err := view.Count(ctx, "", changelog.End)
		if err != nil {
			t.Fatal(err)
		}
		if last := changelog.FirstID(revision) + 1; n != revision || e.Revision != last-1 {
			t.Errorf("at revision %d there are %d keys, and a is that of row %d, not %d", revision, n, e.Revision, last-1)
		}
		if kept := fmt.Sprintf("%T", view) == "*sqlstore.stateView"; kept != (revision == 4) {
			t.Errorf("revision %d is read from memory: %t", revision, kept)
		}
	}
	if _, err := s.Keys().CutTo(ctx, 5, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Keys().AtRevision(ctx, 4); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("a kept revision that is compacted: %v", err)
	}
}
