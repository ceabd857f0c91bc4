package sqlstore

import (
	"slices"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// Predicate is a condition on entries that a Format can tell from their bytes: what an entry has for
// Attribute is one of Terms. The attributes that there are, and their names, are the Format's.
type Predicate struct {
	Attribute string
	Terms     []string // each once
}

// Term is what one entry has for an attribute.
type Term struct {
	Is   Presence
	Text []byte // may be a part of the value; nobody may write to it
}

// Presence says whether there is a term.
type Presence uint8

const (
	Lacking Presence = iota // the entry satisfies no predicate about the attribute
	Present
	Unclear // the bytes do not tell: the entry may satisfy any predicate
)

// TermOf reads an attribute. It is quick: the tail calls it while readers wait.
type TermOf func(key string, value []byte) Term

func nothing(string, []byte) Term { return Term{} }

// attribute is what the state keeps for one attribute of a resource: an index, and the watches that wait for
// certain terms. Guarded by state.mu.
type attribute struct {
	name    string
	read    TermOf
	index   *index // nil: there is none
	watched topics
}

// mostWatched attributes of one resource wake watches by their terms, because each costs every write of it.
// Watches of others are woken by every change below their prefix.
const mostWatched = 32

// attributes are those of a resource that have an index or are watched. Guarded by state.mu.
type attributes struct{ known []*attribute }

func (as *attributes) find(name string) *attribute {
	for _, a := range as.known {
		if a.name == name {
			return a
		}
	}
	return nil
}

// make returns the attribute of that name, which is new if there is none.
func (as *attributes) make(name string, read TermOf) *attribute {
	a := as.find(name)
	if a == nil {
		a = &attribute{name: name, read: read}
		as.known = append(as.known, a)
	}
	return a
}

// forget forgets attributes that nobody needs any more.
func (as *attributes) forget() {
	as.known = slices.DeleteFunc(as.known, func(a *attribute) bool { return a.index == nil && len(a.watched.at) == 0 })
}

// took is what an event did to an entry's term: watchers who wait for neither need not look at the event.
type took struct {
	attribute *attribute
	was, is   Term
}

// note brings all indexes to the state after ev, marks the topics that it concerns, and notes its terms.
func (as *attributes) note(ev *Event, w *window) {
	for _, a := range as.known {
		was, is := a.read.termOf(ev.Prev), a.read.termOf(ev.left())
		if a.index != nil {
			a.index.change(ev.Prev, ev.left(), was, is)
		}
		if len(a.watched.at) > 0 {
			ev.took = append(ev.took, took{a, was, is})
			a.watched.markEvent(ev.Entry, was, is, w)
		}
	}
}

// swap puts again in the place of an entry in all indexes. One of the two may be away: it has the terms of the
// other.
func (as *attributes) swap(e, again *Entry) {
	for _, a := range as.known {
		if a.index == nil {
			continue
		}
		was, is := a.read.termOf(e), a.read.termOf(again)
		if e.isAway() {
			was = is
		} else if again.isAway() {
			is = was
		}
		a.index.change(e, again, was, is)
	}
}

// reset drops all indexes and marks all topics, because the entries are others now.
func (as *attributes) reset(revision int64, w *window) {
	for _, a := range as.known {
		a.index = nil
	}
	as.markAll(revision, w)
	as.forget()
}

func (as *attributes) markAll(revision int64, w *window) {
	for _, a := range as.known {
		a.watched.markAll(revision, w)
	}
}

// concerns says whether ev may be about an entry that has or had one of terms.
func (ev *Event) concerns(a *attribute, terms []string) bool {
	for i := range ev.took {
		if t := &ev.took[i]; t.attribute == a {
			return t.was.mayBe(terms) || t.is.mayBe(terms)
		}
	}
	return true // nobody watched the attribute then, or the log was read
}

// mayBe says whether t is one of terms, as far as one can tell.
func (t *Term) mayBe(terms []string) bool {
	if t.Is == Present {
		for _, term := range terms {
			if term == string(t.Text) {
				return true
			}
		}
	}
	return t.Is == Unclear
}

// termOf returns what e has; nil has nothing.
func (r TermOf) termOf(e *Entry) Term {
	switch {
	case e == nil:
		return Term{}
	case e.form != nil && e.form.sealed != nil:
		return Term{Is: Unclear}
	}
	return r(e.Key, e.Value)
}

// index has a resource's entries in order of their terms for one attribute, and of their keys where the terms
// are the same. As the state, it is an ordered map whose copies take constant time. The tail is the only
// writer of an index that belongs to the state; a copy is read without a lock.
type index struct {
	attribute string
	read      TermOf
	postings  *btree.BTreeG[posting]
	unclear   entryMap // entries that may have any term
	bytes     int      // about what the index takes in memory
	use       *use
}

// posting is an entry that has a term. Postings with the same term share its bytes.
type posting struct {
	term  string
	entry *Entry
}

// use is shared by an index and its copies.
type use struct{ last atomic.Int64 } // when the index was of use to a reader, in Unix nanoseconds

// postingBytes is what a posting takes in the ordered map, whose nodes are two thirds full.
const postingBytes = 36

func newIndex(attribute string, read TermOf) *index {
	return &index{
		attribute: attribute, read: read, use: &use{},
		postings: btree.NewBTreeGOptions(comesBefore, btree.Options{NoLocks: true}),
	}
}

func comesBefore(a, b posting) bool {
	if a.term != b.term {
		return a.term < b.term
	}
	return a.entry.Key < b.entry.Key
}

// copy returns a copy that the original and its changes do not touch.
func (x *index) copy() *index {
	return &index{
		attribute: x.attribute, read: x.read, use: x.use, bytes: x.bytes,
		postings: x.postings.Copy(), unclear: *x.unclear.Copy(),
	}
}

// change puts now in the place of before; either may be nil.
func (x *index) change(before, now *Entry, was, is Term) {
	if before != nil && (now == nil || was.Is != is.Is || string(was.Text) != string(is.Text)) {
		x.remove(before, was)
	}
	if now != nil {
		x.add(now, is)
	}
}

func (x *index) add(e *Entry, t Term) {
	switch t.Is {
	case Unclear:
		if _, replaced := x.unclear.Set(e.Key, e); !replaced {
			x.bytes += postingBytes
		}
	case Present:
		term, known := x.shared(t.Text)
		if _, replaced := x.postings.Set(posting{term, e}); !replaced {
			x.bytes += postingBytes
		}
		if !known {
			x.bytes += len(term)
		}
	}
}

func (x *index) remove(e *Entry, t Term) {
	switch t.Is {
	case Unclear:
		if _, there := x.unclear.Delete(e.Key); there {
			x.bytes -= postingBytes
		}
	case Present:
		if _, there := x.postings.Delete(posting{string(t.Text), e}); there {
			x.bytes -= postingBytes
			if _, known := x.shared(t.Text); !known {
				x.bytes -= len(t.Text)
			}
		}
	}
}

// first is an entry that comes before all others.
var first = &Entry{}

// shared returns a term in the bytes that other postings have, if there are any.
func (x *index) shared(text []byte) (term string, known bool) {
	term = string(text)
	x.postings.Ascend(posting{term, first}, func(p posting) bool {
		if known = p.term == term; known {
			term = p.term
		}
		return false
	})
	return term, known
}

// count returns how many entries with from <= key < to may have one of terms.
func (x *index) count(terms []string, from, to string) (n int) {
	low, high := &Entry{Key: from}, &Entry{Key: to}
	for _, term := range terms {
		n += x.rank(posting{term, high}) - x.rank(posting{term, low})
	}
	if x.unclear.Len() > 0 {
		n += rank(&x.unclear, to) - rank(&x.unclear, from)
	}
	return n
}

// rank returns the number of postings before p.
func (x *index) rank(p posting) int {
	low, high := 0, x.postings.Len()
	for low < high {
		mid := (low + high) / 2
		if q, _ := x.postings.GetAt(mid); comesBefore(q, p) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
