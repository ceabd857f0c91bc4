package sqlstore

import (
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// tenure is what the entry of a raw key has beside what all entries have. Its value may leave
// memory, unlike that of an object, and is not in Entry.Value.
type tenure struct {
	version, lease int64
	size           atomic.Int64           // of the value; 0 until it was read
	held           atomic.Pointer[[]byte] // the value, nil while it is only in the log
	used           atomic.Bool            // since the cache looked last
	dead           bool                   // another row has taken its place; guarded by cache.mu
	cached         bool                   // counted by the cache; guarded by cache.mu
}

// Version returns how often a raw key was put since it was created.
func (e *Entry) Version() int64 {
	if e.form == nil {
		return 0
	}
	return e.form.version
}

// Lease returns the lease that a raw key is attached to, 0 if there is none.
func (e *Entry) Lease() int64 {
	if e.form == nil {
		return 0
	}
	return e.form.lease
}

// size returns how many bytes e's value has.
func (e *Entry) size() int {
	if e.form == nil {
		return len(e.Value)
	}
	return len(e.Value) + int(e.form.size.Load())
}

// ValueBytes returns how many bytes the value has, if that is known: of a raw key, once it was read, or written here.
func (e *Entry) ValueBytes() (n int, known bool) {
	n = e.size()
	return n, n > 0
}

// rawEntry makes the entry of a raw key. A nil value is one that is only in the log.
func rawEntry(row *changelog.Row, value []byte) *Entry {
	made := &struct {
		Entry
		form
	}{
		Entry: Entry{Key: row.Key, Revision: row.Revision, CreateRevision: row.CreateRevision, At: row.At},
		form:  form{tenure: tenure{version: row.Version, lease: row.Lease}},
	}
	made.Entry.form = &made.form
	if value != nil {
		made.form.size.Store(int64(len(value)))
		made.form.held.Store(&value)
	}
	return &made.Entry
}

// value returns the value of a raw key if it is in memory.
func (e *Entry) value() (value []byte, ok bool) {
	held := e.form.held.Load()
	if held == nil {
		return nil, false
	}
	if !e.form.used.Load() {
		e.form.used.Store(true)
	}
	return *held, true
}

// given returns the value of a row that was read with it, where nil stands for no bytes.
func given(row *changelog.Row) []byte {
	if row.Value == nil {
		return []byte{}
	}
	return row.Value
}
