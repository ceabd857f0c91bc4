package sqlstore

import "time"

// Slowest is the watcher that is behind the others.
type Slowest struct {
	Prefix  string        // of the keys that it watches
	Behind  int64         // revisions between what it has delivered and the newest change that it watches
	For     time.Duration // since the oldest change that it has not delivered, or the oldest in memory; 0: nobody is behind
	FromLog bool          // it has fallen out of memory and reads the log
}

// Slowest returns the watcher that has been behind for the longest time. It looks at all of them, under
// the lock of readers. For people and for metrics.
func (s *Store) Slowest() (slowest Slowest) {
	st := &s.state
	st.mu.RLock()
	defer st.mu.RUnlock()
	now := time.Now()
	for _, r := range st.resources {
		slowest = r.slowest(&r.topics, slowest, now)
		for _, a := range r.attributes.known {
			slowest = r.slowest(&a.watched, slowest, now)
		}
	}
	return slowest
}

// slowest returns which is the slowest: one of the watchers of some topics, or one that is known.
func (r *resource) slowest(some *topics, slowest Slowest, now time.Time) Slowest {
	for t := range some.all() {
		for w := range t.watchers {
			if at := w.delivered.Load(); at < t.last {
				if found := r.behind(t, w, at, now); found.For > slowest.For {
					slowest = found
				}
			}
		}
	}
	return slowest
}

// behind tells how far a watcher of the topic is behind that has delivered everything up to a revision. It
// is not, if nothing that it watches has changed since.
func (r *resource) behind(t *topic, w *Watcher, at int64, now time.Time) Slowest {
	found := Slowest{Prefix: t.prefix, Behind: w.v.shown(t.last) - w.v.shown(at), FromLog: at < r.start}
	recent := r.since(max(at, r.start))
	if found.FromLog {
		found.For = time.Nanosecond // memory does not tell more
	}
	if found.FromLog && len(recent) > 0 {
		found.For = max(found.For, now.Sub(time.UnixMilli(recent[0].Entry.At)))
	}
	for _, ev := range recent {
		if w.wants(ev) {
			found.For = max(time.Nanosecond, now.Sub(time.UnixMilli(ev.Entry.At)))
			break
		}
	}
	return found
}
