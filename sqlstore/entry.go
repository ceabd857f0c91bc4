package sqlstore

import (
	"sync/atomic"
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

// size returns how many bytes e's value has.
func (e *Entry) size() int {
	if e.form == nil {
		return len(e.Value)
	}
	return len(e.Value) + int(e.form.size.Load())
}

// form is how the log holds an entry's value, if not as it is, and what a raw key's entry has
// beside that.
type form struct {
	sealed *sealed      // of an unreadable entry, else nil
	away   bool         // the value is only in the log
	size   atomic.Int64 // of a value that is not in Entry.Value; 0 until it was read
	tenure *tenure      // of a raw key, else nil
}

// sealed is what an unreadable entry has in the place of a value.
type sealed struct {
	stored  []byte // nil if the value was to be read from the log, which failed
	err     error  // why it is unreadable
	damaged bool   // for ever
	tried   atomic.Int64
}

// isSealed says that e is unreadable.
func (e *Entry) isSealed() bool { return e.form != nil && e.form.sealed != nil }

// isDamaged says that e is unreadable and stays so.
func (e *Entry) isDamaged() bool { return e.isSealed() && e.form.sealed.damaged }

// isAway says that e, which may be nil, has no value in memory.
func (e *Entry) isAway() bool { return e != nil && e.form != nil && e.form.away }

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
