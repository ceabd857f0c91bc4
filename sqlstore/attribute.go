package sqlstore

import "slices"

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
