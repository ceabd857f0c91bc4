package sqlstore_test

import (
	"fmt"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
)

func TestSnapshotsAreBounded(t *testing.T) {
	s := newStore(t, Options{Snapshots: 3})
	for i := range 20 {
		create(t, s, fmt.Sprintf("%sns/%d", maps, i))
		s.Keep(s.Current(maps))
		s.Keep(s.Current(maps)) // the same again
	}
	if n := s.Stats().Snapshots; n != 3 {
		t.Errorf("%d snapshots kept, want 3", n)
	}
	if err := s.CompactTo(t.Context(), s.Revision()-1); err != nil {
		t.Fatal(err)
	}
	if n := s.Stats().Snapshots; n != 2 {
		t.Errorf("%d snapshots kept at or above the floor, want 2", n)
	}
}
