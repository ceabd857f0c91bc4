package sqlstore_test

import (
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
)

// TestEnd ends what is as it was looked at, and leaves alone what is not.
func TestEnd(t *testing.T) {
	s := newStore(t, Options{})
	old := create(t, s, maps+"ns/a")
	now := commit(t, s, Change{Key: old.Key, Expect: old.Revision, Value: value(old.Key, 1)})
	if err := s.End(t.Context(), old); err != nil || s.Get(old.Key) != now {
		t.Errorf("what has been changed: %v, left %v", err, s.Get(old.Key))
	}
	for range 2 {
		if err := s.End(t.Context(), now); err != nil || s.Get(old.Key) != nil {
			t.Errorf("what there is, or is no more: %v, left %v", err, s.Get(old.Key))
		}
	}
	again := create(t, s, old.Key)
	if err := s.End(t.Context(), now); err != nil || s.Get(old.Key) != again {
		t.Errorf("what has come again: %v, left %v", err, s.Get(old.Key))
	}
}
