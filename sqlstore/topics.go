package sqlstore

import (
	"iter"
	"slices"
	"sort"
	"strings"
)

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
