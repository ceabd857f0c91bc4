package torture

import (
	"fmt"
	"slices"
)

// checkWatch compares what a watch was told with what it should have been told: everything in its
// range after its start, once, in order.
func (c *checker) checkWatch(w *Watch) {
	for i, s := range w.Streams {
		what := fmt.Sprintf("watch %s, stream %d at replica %d after %d (from %.3fs)", w.Name, i, s.Replica, s.Start, s.Begin.Seconds())
		c.checkStream(w, s, what)
	}
	if end := w.position(); end < c.last(w.Prefix) && !c.h.Shrunk {
		c.add(Broken{Guarantee: Ends, Watch: w.Name}, "watch %s ended at revision %d, and there are changes up to %d", w.Name, end, c.last(w.Prefix))
	}
}

// last returns the newest revision of a range.
func (c *checker) last(prefix string) int64 {
	for _, r := range slices.Backward(c.h.Log) {
		if within(r.Key, prefix) {
			return r.Revision
		}
	}
	return 0
}

// position is the revision through which a watch was told everything.
func (w *Watch) position() (revision int64) {
	for _, s := range w.Streams {
		revision = max(revision, s.position())
	}
	return revision
}

func (s *Stream) position() int64 {
	position, state := s.Start, s.State
	for _, e := range s.Events {
		if state {
			state = !e.Initial // events of the state are not in order
			if state {
				continue
			}
		}
		position = max(position, e.Revision)
	}
	return position
}

func (c *checker) checkStream(w *Watch, s *Stream, what string) {
	events, position := s.Events, s.Start
	if s.State {
		var whole bool
		if events, position, whole = c.checkState(w, s, what); !whole {
			return
		}
	}
	for _, e := range events {
		if e.Type != Bookmark {
			c.checkEvent(w, e, position, what)
		}
		if missed := c.o.changes(c.h.Log, w.Prefix, position, through(e)); len(missed) > 0 {
			guarantee := Complete
			if e.Type == Bookmark {
				guarantee = Bookmarks
			}
			c.add(Broken{Guarantee: guarantee, Watch: w.Name, Key: missed[0].Key}, "%s: it was told of %s %s at revision %d (at %.3fs), and not before of %+v",
				what, e.Type, e.Key, e.Revision, e.At.Seconds(), missed[0])
		}
		position = max(position, e.Revision)
	}
	switch s.Status {
	case 0, 200, 429, 500, 502, 503, 504:
	case 410:
		c.checkExpired(nil, position, s.End, what)
	default:
		c.add(Broken{Guarantee: Reason, Watch: w.Name}, "%s: %d: %s", what, s.Status, s.Error)
	}
}

// through is the last revision that must have been told before e.
func through(e Event) int64 {
	if e.Type == Bookmark {
		return e.Revision
	}
	return e.Revision - 1
}

// checkEvent wants the change that the log has at the event's revision.
func (c *checker) checkEvent(w *Watch, e Event, position int64, what string) {
	b := Broken{Guarantee: Complete, Watch: w.Name, Key: e.Key}
	if e.Revision <= position {
		c.add(b, "%s: %s %s at revision %d came after everything up to %d", what, e.Type, e.Key, e.Revision, position)
	}
	i := c.o.index(e.Key, e.Revision)
	if i < 0 || c.o.versions[e.Key][i].Revision != e.Revision || !within(e.Key, w.Prefix) {
		c.add(b, "%s: it was told of %+v, which the log does not have", what, e)
		return
	}
	row, want := c.o.versions[e.Key][i], Modified
	switch {
	case row.Deleted:
		want = Deleted
	case i == 0 || c.o.versions[e.Key][i-1].Deleted:
		want = Added
	}
	if e.Type != want || e.Item != row.Item {
		c.add(b, "%s: it was told of %+v, and the log has %s %+v", what, e, want, row)
	}
}

// checkState compares the state that a stream begins with, and returns the events after it.
func (c *checker) checkState(w *Watch, s *Stream, what string) (rest []Event, revision int64, whole bool) {
	end := slices.IndexFunc(s.Events, func(e Event) bool { return e.Type == Bookmark && e.Initial })
	if end < 0 {
		for _, e := range s.Events {
			c.checkVersion(Broken{Guarantee: Answers, Watch: w.Name}, e.Item, what)
		}
		return nil, 0, false
	}
	var items []Item
	for _, e := range s.Events[:end] {
		items = append(items, e.Item)
		if e.Type != Added {
			c.add(Broken{Guarantee: ExactState, Watch: w.Name, Key: e.Key}, "%s: %s %s is in the state", what, e.Type, e.Key)
		}
	}
	revision = s.Events[end].Revision
	c.compare(Broken{Guarantee: ExactState, Watch: w.Name}, items, w.Prefix, revision, false, what+", its state")
	return s.Events[end+1:], revision, true
}
