package sqlstore

import (
	"sync/atomic"

	"github.com/tidwall/btree"
)

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
