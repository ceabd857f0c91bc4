package sqlstore_test

import (
	"fmt"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
)

// TestWatchRests wants a watcher whose keys do not change to need neither the log nor what is
// compacted, when at last one changes.
func TestWatchRests(t *testing.T) {
	s := newStore(t, Options{WindowBytes: 1})
	w, err := s.Watch(maps, maps+"rests/", s.Revision())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 3 {
		if _, _, err := w.Poll(t.Context()); err != nil { // after which the watcher rests
			t.Fatal(err)
		}
		writeRandomly(t, s, 2, 50)
		if err := s.CompactTo(t.Context(), s.Revision()); err != nil {
			t.Fatal(err)
		}
		reads := s.Stats().WatchReads
		key := fmt.Sprintf("%srests/%d", maps, s.Revision())
		create(t, s, key)
		<-w.Wait()
		events := poll(t, w, s.Revision())
		if len(events) != 1 || events[0].Entry.Key != key {
			t.Fatalf("%d events, want the one of %s", len(events), key)
		}
		if n := s.Stats().WatchReads - reads; n > 1 {
			t.Errorf("the log was read %d times for an event that is new", n)
		}
	}
}
