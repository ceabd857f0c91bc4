package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

const (
	pollEvents = 256  // most events that one Poll returns
	pollLooks  = 4096 // most events that one Poll looks at under the lock

	// logPolls is how many Polls read from the log at once: most values of a first page may be too many to keep.
	logPolls = 4
)

// Watcher delivers the changes of the keys of one range, in revision order, each
// once. It costs no goroutine and no buffer: it is a position in the shared window, or
// in the log when it has fallen out of the window. One whose keys rest does not fall out, however
// much else changes and is compacted. Only one goroutine may use it, but
// for Close.
type Watcher struct {
	v        *values
	from, to string
	resource *resource
	topic    *topic
	watches  *attribute // whose terms the topic has, else nil

	pos  int64         // all changes up to here were delivered
	wait chan struct{} // closed when there may be events that the last Poll did not see
	news *news         // whose channel wait is, else nil
	page pages.Pager

	// delivered is pos at the end of the last Poll, for Slowest.
	delivered atomic.Int64

	closed bool // guarded by state.mu
}

var alwaysReady = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Watch returns a Watcher of all changes after revision of the keys that begin with
// prefix, which must begin with resource. ErrCompacted if revision is below the floor;
// 0 asks for everything from the beginning of the log. A revision not reached yet is
// waited for.
func (s *Store) Watch(resource, prefix string, after int64) (*Watcher, error) {
	return s.WatchWhere(resource, prefix, after, nil)
}

// WatchWhere is Watch for a reader who is interested only in changes of entries that satisfy all of where
// before or after them. It may return others too, but in memory few wake it that do not concern the
// first predicate.
func (s *Store) WatchWhere(resource, prefix string, after int64, where []Predicate) (*Watcher, error) {
	if !strings.HasPrefix(prefix, resource) {
		return nil, fmt.Errorf("watch %s: prefix %s is not of this resource", resource, prefix)
	}
	from, to := changelog.RangeOf(prefix)
	return s.values.watch(resource, prefix, from, to, after, where)
}

// WatchRange watches the raw keys with from <= key < to. after is an id. Its Poll never
// divides a revision.
func (k *Keys) WatchRange(from, to string, after int64) (*Watcher, error) {
	return k.values.watch("", common(from, to), from, to, after, nil)
}

// common returns the longest prefix that all keys in [from, to) have.
func common(from, to string) string {
	if to == from+"\x00" {
		return from
	}
	n := 0
	for n < min(len(from), len(to)) && from[n] == to[n] {
		n++
	}
	if from != "" && to != "" {
		if start, end := changelog.RangeOf(from); start == from && end == to {
			return from
		}
	}
	return from[:n]
}

// watch watches a range of resource, all keys of which begin with prefix.
func (v *values) watch(resource, prefix, from, to string, after int64, where []Predicate) (*Watcher, error) {
	if after < v.state.floor.Load() {
		return nil, fmt.Errorf("watch %s after %d: %w", prefix, after, changelog.ErrCompacted)
	}
	w := &Watcher{v: v, from: from, to: to, pos: after, wait: alwaysReady, page: v.firstPoll}
	w.delivered.Store(after)
	v.state.mu.Lock()
	defer v.state.mu.Unlock()
	if v.state.closed {
		return nil, changelog.ErrClosed
	}
	w.resource = v.state.resource(resource)
	w.join(prefix, where)
	v.stats.watchers.Add(1)
	return w, nil
}

// join makes w wait for what it watches. The lock is held.
func (w *Watcher) join(prefix string, where []Predicate) {
	r := w.resource
	if len(where) > 0 && len(where[0].Terms) > 0 {
		p := where[0]
		if r.attributes.find(p.Attribute) != nil || len(r.attributes.known) < mostWatched {
			w.watches = r.attributes.make(p.Attribute, w.v.o.Format.TermOf(p.Attribute))
			w.topic = w.watches.watched.join(w, prefix, p.Terms, r.last)
			return
		}
	}
	w.topic = r.topics.join(w, prefix, everyTerm, r.last)
}

// leave undoes join.
func (w *Watcher) leave() {
	if w.watches == nil {
		w.resource.topics.leave(w, w.topic)
		return
	}
	w.watches.watched.leave(w, w.topic)
	w.resource.attributes.forget()
}

// wants says whether w may be about ev.
func (w *Watcher) wants(ev *Event) bool {
	key := ev.Entry.Key
	return w.from <= key && key < w.to && (w.watches == nil || ev.concerns(w.watches, w.topic.terms))
}

// Close ends the watcher. It may be called more than once and from any goroutine.
func (w *Watcher) Close() {
	mu := &w.v.state.mu
	mu.Lock()
	defer mu.Unlock()
	if !w.closed {
		w.closed = true
		w.leave()
		w.v.stats.watchers.Add(-1)
	}
}

// Wait returns a channel that is closed when Poll may return more events than at its
// last call, and when the Store closes. Progress of through alone does not close it.
func (w *Watcher) Wait() <-chan struct{} { return w.wait }

// Poll returns the next events, and the revision through which the watcher has now
// delivered everything, which grows with changes of other resources too. It returns at
// once if there are none, and reads the log if the watcher has fallen out of the window.
// After ErrCompacted changes are lost and the watcher is of no more use; after
// ErrUnavailable Poll may be tried again.
func (w *Watcher) Poll(ctx context.Context) (events []*Event, through int64, err error) {
	events, until, err := w.pollWindow()
	if err == nil && until > w.pos {
		events, err = w.pollLog(ctx, until)
	}
	w.delivered.Store(w.pos)
	return events, w.pos, err
}

// pollWindow takes events from the window. If events are missing there, it returns the
// revision until which the log must be read.
func (w *Watcher) pollWindow() (events []*Event, until int64, err error) {
	st := w.v.state
	st.mu.RLock()
	defer st.mu.RUnlock()
	if st.closed || w.closed {
		return nil, 0, changelog.ErrClosed
	}
	if w.news != nil {
		w.pos = max(w.pos, w.news.before)
	}
	w.news, w.wait = w.topic.news, w.topic.news.c
	switch {
	case w.topic.last <= w.pos:
		w.pos = max(w.pos, st.applied.Load())
	case w.pos < w.resource.start:
		w.goOn()
		return nil, w.v.end(w.resource.start), nil
	default:
		events = w.filter(w.resource.since(w.pos), st.applied.Load())
	}
	return events, 0, nil
}

// goOn makes the next Poll begin where this one ends, as there is more already.
func (w *Watcher) goOn() { w.news, w.wait = nil, alwaysReady }

// filter collects the events of the watched range from recent, up to the bounds of
// one Poll, and moves the position.
func (w *Watcher) filter(recent []*Event, applied int64) (events []*Event) {
	bytes := 0
	for i, ev := range recent {
		if (i >= pollLooks || len(events) >= pollEvents || bytes >= w.v.polled) && ev.Entry.Revision > w.v.end(w.pos) {
			w.goOn()
			return events
		}
		w.pos = ev.Entry.Revision
		if w.wants(ev) {
			events = append(events, ev)
			bytes += ev.size()
		}
	}
	w.pos = max(w.pos, applied)
	return events
}

// pollLog reads one page of the log's changes up to until, where the window begins.
func (w *Watcher) pollLog(ctx context.Context, until int64) ([]*Event, error) {
	limit := w.page.Limit()
	steps, err := w.readLight(ctx, until, &limit)
	if err != nil {
		return nil, fmt.Errorf("read changes of %s after %d: %w", w.topic.prefix, w.pos, err)
	}
	bytes := 0
	events := make([]*Event, len(steps))
	keys, cancel := context.WithTimeout(ctx, pageTransform)
	defer cancel()
	for i := range steps {
		events[i] = w.v.eventOf(keys, &steps[i])
		bytes += events[i].size()
		w.pos = steps[i].Revision
	}
	if len(steps) < limit {
		w.pos = until
	}
	w.page.Read(len(steps), bytes)
	return events, nil
}

// readLight is readSteps without the steps that are too heavy for one Poll. It waits for its turn.
func (w *Watcher) readLight(ctx context.Context, until int64, limit *int) ([]changelog.Step, error) {
	select {
	case w.v.polls <- struct{}{}:
		defer func() { <-w.v.polls }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.v.stats.watchReads.Add(1)
	steps, err := w.readSteps(ctx, until, limit)
	if err != nil {
		return nil, err
	}
	if most := w.light(steps); most < len(steps) {
		steps, *limit = steps[:most], most
	}
	return steps, nil
}

// light returns how many of the steps weigh no more than one Poll is to have, and one revision more.
func (w *Watcher) light(steps []changelog.Step) int {
	bytes := 0
	for i := range steps {
		if bytes >= w.v.polled && steps[i].Revision > w.v.end(steps[i-1].Revision) {
			return i
		}
		bytes += len(steps[i].Value)
		if prev := steps[i].Prev; prev != nil {
			bytes += len(prev.Value)
		}
	}
	return len(steps)
}

// readSteps reads whole revisions: what may be a part of one at the end of a page is left for the
// next, and a page that has no more than a part of one is read anew with a higher limit.
func (w *Watcher) readSteps(ctx context.Context, until int64, limit *int) ([]changelog.Step, error) {
	for {
		steps, err := w.v.log.Steps(ctx, w.from, w.to, w.pos, until, *limit)
		if err != nil || len(steps) < *limit {
			return steps, err
		}
		whole := w.v.whole(len(steps), func(i int) int64 { return steps[i].Revision })
		if whole > 0 {
			*limit = whole
			return steps[:whole], nil
		}
		*limit *= 4
	}
}
