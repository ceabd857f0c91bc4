package sqlstore

import "sort"

// topic is a prefix that is watched. Guarded by state.mu.
type topic struct {
	prefix   string
	watchers map[*Watcher]struct{}
	last     int64 // no key with the prefix changed in (last, applied]
	news     *news
	marked   bool
}

// news wakes the watchers of a topic at its next change.
type news struct {
	c      chan struct{} // closed after the change
	before int64         // no key of the topic changed until then, 0 if that is not known
}

func newNews() *news { return &news{c: make(chan struct{})} }

// topics finds the watched prefixes of a key by trying each length that occurs: a few
// look-ups, however many namespaces or single objects are watched.
type topics struct {
	byPrefix map[string]*topic
	lengths  []int       // ascending
	count    map[int]int // topics by length
}

// join returns the topic of prefix, which w watches from now on. A new topic takes its newest
// change to be at last or before.
func (ts *topics) join(w *Watcher, prefix string, last int64) *topic {
	t := ts.byPrefix[prefix]
	if t == nil {
		t = &topic{prefix: prefix, watchers: map[*Watcher]struct{}{}, last: last, news: newNews()}
		ts.insert(t)
	}
	t.watchers[w] = struct{}{}
	return t
}

func (ts *topics) insert(t *topic) {
	if ts.byPrefix == nil {
		ts.byPrefix = make(map[string]*topic)
		ts.count = make(map[int]int)
	}
	ts.byPrefix[t.prefix] = t
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
	delete(ts.byPrefix, t.prefix)
	n := len(t.prefix)
	if ts.count[n]--; ts.count[n] == 0 {
		delete(ts.count, n)
		i := sort.SearchInts(ts.lengths, n)
		ts.lengths = append(ts.lengths[:i], ts.lengths[i+1:]...)
	}
}

// mark notes a change of key at revision in all topics that it belongs to.
func (ts *topics) mark(key string, revision int64, w *window) {
	for _, n := range ts.lengths {
		if n > len(key) {
			return
		}
		if t := ts.byPrefix[key[:n]]; t != nil {
			t.mark(revision, w)
		}
	}
}

// markAll notes that any key may have changed up to revision.
func (ts *topics) markAll(revision int64, w *window) {
	for _, t := range ts.byPrefix {
		t.mark(revision, w)
		t.news.before = 0
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
