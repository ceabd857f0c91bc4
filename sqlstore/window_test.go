package sqlstore_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
)

// TestWindowAges has events leave that were there when the window aged last. A watch from before
// gets all of them from the log.
func TestWindowAges(t *testing.T) {
	s := newStore(t, Options{WindowAge: time.Hour})
	start := s.Revision()
	for i := range 1200 { // more than leave in one step
		create(t, s, fmt.Sprintf("%sns/%04d", maps, i))
	}
	events := func() int { return s.Stats().WindowEvents }
	if s.Age(); events() != 1200 {
		t.Errorf("%d events, none of which is old", events())
	}
	seen := s.Revision()
	for i := range 3 {
		create(t, s, fmt.Sprintf("%sns/later-%d", maps, i))
	}
	if s.Age(); events() != 3 {
		t.Errorf("%d events, 3 of which are new", events())
	}
	if _, _, complete := s.Since(maps, seen-1); complete {
		t.Error("the window has an event that has left")
	}
	if later, _, complete := s.Since(maps, seen); !complete || len(later) != 3 {
		t.Errorf("%d events, complete: %v", len(later), complete)
	}
	w, err := s.Watch(maps, maps, start)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for last := start; last < s.Revision(); {
		got, through, err := w.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range got {
			if ev.Entry.Revision != last+1 {
				t.Fatalf("event %d after %d", ev.Entry.Revision, last)
			}
			last++
		}
		if through < last {
			t.Fatalf("events up to %d, and complete through %d", last, through)
		}
	}
	if s.Age(); events() != 0 || s.Stats().WindowBytes != 0 {
		t.Errorf("%d events with %d bytes, all of which were old", events(), s.Stats().WindowBytes)
	}
}

// TestWindowAgesByItself waits for it.
func TestWindowAgesByItself(t *testing.T) {
	s := newStore(t, Options{WindowAge: time.Millisecond})
	create(t, s, maps+"ns/a")
	for deadline := time.Now().Add(10 * time.Second); s.Stats().WindowEvents > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the event stays")
		}
	}
}
