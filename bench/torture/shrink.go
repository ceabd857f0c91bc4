package torture

import (
	"slices"
	"time"
)

// Shrink leaves calls, streams and other objects out of a history as long as the same fault is found, for
// at most d. It returns what is left, and the fault as it is found there.
func Shrink(h *History, b Broken, d time.Duration) (*History, Broken) {
	s := &shrinker{best: h, fault: b, until: time.Now().Add(d)}
	if b.Key != "" {
		s.try(s.best.only(b.Key))
	}
	if b.Watch != "" {
		s.try(s.best.withWatches(slices.DeleteFunc(slices.Clone(s.best.Watches), func(w *Watch) bool { return w.Name != b.Watch })))
	} else {
		s.try(s.best.withWatches(nil))
	}
	s.calls()
	s.streams()
	return s.best, s.fault
}

type shrinker struct {
	best  *History
	fault Broken
	until time.Time
}

// try takes a smaller history if the fault is still found.
func (s *shrinker) try(h *History) bool {
	if time.Now().After(s.until) {
		return false
	}
	for _, b := range check(h, time.Until(s.until)) {
		if b.same(&s.fault) {
			s.best, s.fault = h, b
			return true
		}
	}
	return false
}

// calls leaves out halves, quarters and so on of the calls.
func (s *shrinker) calls() {
	for n := max(1, len(s.best.Calls)/2); ; n /= 2 {
		for at := 0; at < len(s.best.Calls); {
			end := min(at+n, len(s.best.Calls))
			if !s.try(s.best.withCalls(slices.Concat(s.best.Calls[:at], s.best.Calls[end:]))) {
				at = end
			}
		}
		if n <= 1 || time.Now().After(s.until) {
			return
		}
	}
}

// streams leaves out streams of watches, one by one.
func (s *shrinker) streams() {
	for i := range s.best.Watches {
		for at := 0; at < len(s.best.Watches[i].Streams); {
			watches := slices.Clone(s.best.Watches)
			w := *watches[i]
			w.Streams = slices.Delete(slices.Clone(w.Streams), at, at+1)
			watches[i] = &w
			if !s.try(s.best.withWatches(watches)) {
				at++
			}
		}
	}
}

func (h *History) copied() *History {
	return &History{
		Seed: h.Seed, Round: h.Round, Begun: h.Begun, Keeps: h.Keeps, Faults: h.Faults, Digests: h.Digests,
		Calls: h.Calls, Watches: h.Watches, Log: h.Log, Others: h.Others, Shrunk: true,
	}
}

func (h *History) withCalls(calls []*Call) *History {
	next := h.copied()
	next.Calls = calls
	return next
}

func (h *History) withWatches(watches []*Watch) *History {
	next := h.copied()
	next.Watches = watches
	return next
}

// only is the part of the history that is about one object.
func (h *History) only(key string) *History {
	next := h.copied()
	next.Calls, next.Watches, next.Log, next.Others = nil, nil, nil, slices.Clone(h.Others)
	for _, c := range h.Calls {
		if within(key, c.Key) {
			part := *c
			part.Items = slices.DeleteFunc(slices.Clone(c.Items), func(i Item) bool { return i.Key != key })
			next.Calls = append(next.Calls, &part)
		}
	}
	for _, w := range h.Watches {
		part := &Watch{Name: w.Name, Prefix: w.Prefix}
		for _, s := range w.Streams {
			stream := *s
			stream.Events = slices.DeleteFunc(slices.Clone(s.Events), func(e Event) bool { return e.Type != Bookmark && e.Key != key })
			part.Streams = append(part.Streams, &stream)
		}
		next.Watches = append(next.Watches, part)
	}
	for _, r := range h.Log {
		if r.Key == key {
			next.Log = append(next.Log, r)
		} else {
			next.Others = append(next.Others, Moment{r.Revision, r.At})
		}
	}
	return next
}
