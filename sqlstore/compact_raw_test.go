package sqlstore_test

import (
	"errors"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
)

// TestCutTo wants a compacted revision to be the floor at once, also if it is the newest, and
// revisions to go on above it.
func TestCutTo(t *testing.T) {
	dsn := fileDSN(t)
	s := openRaw(t, dsn, Options{})
	putRaw(t, s, "a", "1", "b", "1") // 2
	putRaw(t, s, "a", "2")           // 3
	do(t, s, func(tx *Tx) error { tx.Delete("b"); return nil })
	if found, err := s.CutTo(t.Context(), 3, true); err != nil || found != 0 {
		t.Fatalf("%d, %v", found, err)
	}
	if _, err := s.At(t.Context(), "", LastID(2)); !errors.Is(err, ErrCompacted) {
		t.Errorf("state below the floor: %v", err)
	}
	v, err := s.At(t.Context(), "", LastID(3))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rawState(t, s, v), `"a"=2@3/2/2 "b"=1@2/2/1 `; got != want {
		t.Errorf("state at the floor %s, want %s", got, want)
	}
	if found, err := s.CutTo(t.Context(), 4, true); err != nil || found != 3 {
		t.Errorf("%d, %v", found, err)
	}
	if found, err := s.CutTo(t.Context(), 4, false); err != nil || found != 4 {
		t.Errorf("once more: %d, %v", found, err)
	}
	if r, err := s.Sync(t.Context()); err != nil || r>>SubBits != 4 {
		t.Errorf("revision %d, %v", r>>SubBits, err)
	}
	if _, err := s.WatchRange("", End, LastID(3)); !errors.Is(err, ErrCompacted) {
		t.Errorf("watch below the floor: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openRaw(t, dsn, Options{})
	if r := putRaw(t, s, "c", "3"); r != 5 {
		t.Errorf("revision after the cut: %d", r)
	}
	if got, want := rawState(t, s, s.Current("")), `"a"=2@3/2/2 "c"=3@5/5/1 `; got != want {
		t.Errorf("state %s, want %s", got, want)
	}
}
