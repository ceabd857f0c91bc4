package sqlstore

import (
	"iter"
	"slices"
	"sort"
	"strings"
	"time"
)

// window bounds the events that all resources keep in memory. It belongs to state and
// is guarded by its mutex.
type window struct {
	limit int
	bytes int
	order queue[*resource] // the resource of the oldest event, of the second oldest, …
	old   int              // how many of them, the oldest, leave when the window ages next

	marked []*topic // topics that have events in the batch that is being applied
}

// add appends ev to r's events and drops the oldest events of all resources until the
// window is within its limit. The limit holds for what an event pins: its entry and
// the one before.
func (w *window) add(r *resource, ev *Event) {
	r.events.push(ev)
	w.order.push(r)
	w.bytes += ev.size()
	for w.bytes > w.limit && w.order.len() > 0 {
		w.drop()
	}
}

// drop drops the oldest event.
func (w *window) drop() {
	oldest := w.order.pop()
	ev := oldest.events.pop()
	w.bytes -= ev.size()
	oldest.start = ev.Entry.Revision
	w.old = max(0, w.old-1)
}

func (w *window) clear() {
	w.bytes, w.old = 0, 0
	w.order = queue[*resource]{}
}

// ageStep is how many events leave while others wait.
const ageStep = 512

// age drops the events that were there when it was called last.
func (st *state) age() {
	for {
		st.mu.Lock()
		for n := 0; n < ageStep && st.window.old > 0; n++ {
			st.window.drop()
		}
		done := st.window.old == 0
		if done {
			st.window.old = st.window.order.len()
		}
		st.mu.Unlock()
		if done {
			return
		}
	}
}

// runAging lets events leave memory that are one to two times every old, which is Options.WindowAge. A watch that resumes comes
// back sooner, and finds later ones in the log; without this the window of a small cluster
// would have old states of all that changes, up to its bound.
func (st *state) runAging(every time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			st.age()
		case <-stop:
			return
		}
	}
}

// takeMarked returns the channels that wake the watchers of marked topics and gives
// each topic a fresh one.
func (w *window) takeMarked() []chan struct{} {
	if len(w.marked) == 0 {
		return nil
	}
	woken := make([]chan struct{}, len(w.marked))
	for i, t := range w.marked {
		woken[i] = t.news.c
		t.news = newNews()
		t.marked = false
	}
	w.marked = w.marked[:0]
	return woken
}

// since returns the events of r after revision.
func (r *resource) since(revision int64) []*Event {
	all := r.events.all()
	i := sort.Search(len(all), func(i int) bool { return all[i].Entry.Revision > revision })
	return all[i:]
}

// queue is a slice that is taken from at its front without moving it each time.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }
func (q *queue[T]) all() []T { return q.items[q.head:] }
func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

func (q *queue[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if q.head >= 32 && q.head > len(q.items)/2 {
		q.items = append(make([]T, 0, q.len()*2), q.all()...)
		q.head = 0
	}
	return v
}

// topic is what watches have in common: a prefix of keys, and which terms for an attribute make a watch wait
// for an entry. Guarded by state.mu.
type topic struct {
	prefix   string
	terms    []string // one of them; topics of all keys have the empty one
	watchers map[*Watcher]struct{}
	last     int64 // no key of the topic changed in (last, applied]
	news     *news
	marked   bool
}

// news wakes the watchers of a topic at its next change.
type news struct {
	c      chan struct{} // closed after the change
	before int64         // no key of the topic changed until then, 0 if that is not known
}

func newNews() *news { return &news{c: make(chan struct{})} }

// topics finds the watched prefixes of a key, among those of one term, by trying each length that occurs: a
// few look-ups, however many namespaces, single objects or terms are watched.
type topics struct {
	at      map[place][]*topic
	lengths []int       // of prefixes, ascending
	count   map[int]int // topics by length
}

// place is where a topic is found. A topic is at one place for each of its terms.
type place struct{ term, prefix string }

// everyTerm are the terms of topics that have no attribute.
var everyTerm = []string{""}

// join returns the topic of prefix and terms, which w watches from now on. A new topic takes its newest
// change to be at last or before.
func (ts *topics) join(w *Watcher, prefix string, terms []string, last int64) *topic {
	t := ts.find(prefix, terms)
	if t == nil {
		t = &topic{prefix: prefix, terms: terms, watchers: map[*Watcher]struct{}{}, last: last, news: newNews()}
		ts.insert(t)
	}
	t.watchers[w] = struct{}{}
	return t
}

func (ts *topics) find(prefix string, terms []string) *topic {
	for _, t := range ts.at[place{terms[0], prefix}] {
		if slices.Equal(t.terms, terms) {
			return t
		}
	}
	return nil
}

func (ts *topics) insert(t *topic) {
	if ts.at == nil {
		ts.at = make(map[place][]*topic)
		ts.count = make(map[int]int)
	}
	for _, term := range t.terms {
		at := place{term, t.prefix}
		ts.at[at] = append(ts.at[at], t)
	}
	n := len(t.prefix)
	if ts.count[n]++; ts.count[n] == 1 {
		ts.lengths = append(ts.lengths, n)
		sort.Ints(ts.lengths)
	}
}

func (ts *topics) leave(w *Watcher, t *topic) {
	if delete(t.watchers, w); len(t.watchers) > 0 {
		return
	}
	for _, term := range t.terms {
		at := place{term, t.prefix}
		if ts.at[at] = slices.DeleteFunc(ts.at[at], func(o *topic) bool { return o == t }); len(ts.at[at]) == 0 {
			delete(ts.at, at)
		}
	}
	n := len(t.prefix)
	if ts.count[n]--; ts.count[n] == 0 {
		delete(ts.count, n)
		i := sort.SearchInts(ts.lengths, n)
		ts.lengths = append(ts.lengths[:i], ts.lengths[i+1:]...)
	}
}

// mark notes a change of key, which has or had a term, at revision in all topics that it belongs to.
func (ts *topics) mark(key, term string, revision int64, w *window) {
	for _, n := range ts.lengths {
		if n > len(key) {
			return
		}
		for _, t := range ts.at[place{term, key[:n]}] {
			t.mark(revision, w)
		}
	}
}

// markEvent marks the topics of a term that an entry had before a change or has after it: who waits for the
// first must see that it is gone.
func (ts *topics) markEvent(e *Entry, was, is Term, w *window) {
	if was.Is == Unclear || is.Is == Unclear {
		ts.markAny(e.Key, e.Revision, w)
		return
	}
	if was.Is == Present {
		ts.mark(e.Key, string(was.Text), e.Revision, w)
	}
	if is.Is == Present {
		ts.mark(e.Key, string(is.Text), e.Revision, w)
	}
}

// markAny is mark for a key that may have or have had any term.
func (ts *topics) markAny(key string, revision int64, w *window) {
	for t := range ts.all() {
		if strings.HasPrefix(key, t.prefix) {
			t.mark(revision, w)
		}
	}
}

// markAll notes that any key may have changed up to revision.
func (ts *topics) markAll(revision int64, w *window) {
	for t := range ts.all() {
		t.mark(revision, w)
		t.news.before = 0
	}
}

// all returns the topics, those of several terms several times.
func (ts *topics) all() iter.Seq[*topic] {
	return func(yield func(*topic) bool) {
		for _, some := range ts.at {
			for _, t := range some {
				if !yield(t) {
					return
				}
			}
		}
	}
}

func (t *topic) mark(revision int64, w *window) {
	t.last = revision
	if !t.marked {
		t.marked = true
		t.news.before = revision - 1
		w.marked = append(w.marked, t)
	}
}
