package sqlstore

import (
	"container/heap"
	"time"
)

// scan calls f with the entries from <= key < to that may have one of terms, in key order, until f returns
// false.
func (x *index) scan(terms []string, from, to string, f func(*Entry) bool) {
	if x.unclear.Len() == 0 && len(terms) == 1 {
		x.ascend(terms[0], from, to, f)
		return
	}
	var all cursors
	for _, term := range terms {
		all.add(x.cursor(term, from, to))
	}
	all.add(cursorOf(&x.unclear, from, to))
	heap.Init(&all)
	for len(all) > 0 {
		if !f(all[0].entry) {
			return
		}
		if all[0].advance() {
			heap.Fix(&all, 0)
		} else {
			heap.Pop(&all)
		}
	}
}

func (x *index) ascend(term, from, to string, f func(*Entry) bool) {
	x.postings.Ascend(posting{term, &Entry{Key: from}}, func(p posting) bool {
		return p.term == term && p.entry.Key < to && f(p.entry)
	})
}

// cursor is a position among entries in key order.
type cursor struct {
	entry *Entry
	next  func() *Entry // nil at the end
}

func (c *cursor) advance() bool {
	c.entry = c.next()
	return c.entry != nil
}

func (x *index) cursor(term, from, to string) *cursor {
	all := x.postings.Iter()
	next := func(there bool) *Entry {
		if !there {
			return nil
		}
		if p := all.Item(); p.term == term && p.entry.Key < to {
			return p.entry
		}
		return nil
	}
	return &cursor{next(all.Seek(posting{term, &Entry{Key: from}})), func() *Entry { return next(all.Next()) }}
}

func cursorOf(m *entryMap, from, to string) *cursor {
	all := m.Iter()
	next := func(there bool) *Entry {
		if there && all.Key() < to {
			return all.Value()
		}
		return nil
	}
	return &cursor{next(all.Seek(from)), func() *Entry { return next(all.Next()) }}
}

// cursors is a heap with the least key first. An entry is at one of them.
type cursors []*cursor

func (c *cursors) add(one *cursor) {
	if one.entry != nil {
		*c = append(*c, one)
	}
}

func (c cursors) Len() int           { return len(c) }
func (c cursors) Less(i, j int) bool { return c[i].entry.Key < c[j].entry.Key }
func (c cursors) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(one any)      { *c = append(*c, one.(*cursor)) }

func (c *cursors) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

func (u *use) now() { u.last.Store(time.Now().UnixNano()) }
