package sqlstore

import (
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Entry is one key's value at one revision, as readers see it. It is immutable and
// shared; nobody may write to Value.
type Entry struct {
	Key            string
	Revision       int64
	CreateRevision int64
	At             int64  // commit time, Unix milliseconds
	Value          []byte // as Format.Show has made it; nil for a raw key, see Keys.Values

	form *form // nil: an object that the log holds as it is
	memo atomic.Pointer[memo]
}

// values makes entries of rows, and gets the values that are not in memory. It has no state of its own.
type values struct {
	*shared
	state    *state
	cache    *cache
	newEntry func(*changelog.Row) *Entry // makes the entry that readers see of a row
	polls    chan struct{}               // has a token for each Poll that reads from the log
}

// size returns how many bytes e's value has.
func (e *Entry) size() int {
	if e.form == nil {
		return len(e.Value)
	}
	return len(e.Value) + int(e.form.size.Load())
}

// With returns a copy of e with another revision and value.
func (e *Entry) With(revision int64, value []byte) *Entry {
	return &Entry{
		Key:            e.Key,
		Revision:       revision,
		CreateRevision: e.CreateRevision,
		At:             e.At,
		Value:          value,
		form:           e.form,
	}
}

// memo is one derived form of an entry; an entry has few, so a list is enough.
type memo struct {
	key   any
	value any
	next  *memo
}

// Recall returns what Memo keeps under key; it is false if there is nothing yet.
func (e *Entry) Recall(key any) (any, bool) { return e.memo.Load().find(key) }

// Memo returns what derive made of e under key, calling it the first time. Two callers
// that race may both derive; both get the result that was stored first.
func (e *Entry) Memo(key any, derive func() any) any {
	head := e.memo.Load()
	if v, ok := head.find(key); ok {
		return v
	}
	value := derive()
	for {
		if e.memo.CompareAndSwap(head, &memo{key, value, head}) {
			return value
		}
		head = e.memo.Load()
		if v, ok := head.find(key); ok {
			return v
		}
	}
}

func (m *memo) find(key any) (any, bool) {
	for ; m != nil; m = m.next {
		if m.key == key {
			return m.value, true
		}
	}
	return nil, false
}
