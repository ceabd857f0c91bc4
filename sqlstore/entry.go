package sqlstore

import (
	"bytes"
	"strconv"
	"sync/atomic"
)

// Entry is one key's object at one revision, as readers see it. It is immutable and
// shared; nobody may write to JSON.
type Entry struct {
	Key            string
	Revision       int64
	CreateRevision int64
	At             int64  // commit time, Unix milliseconds
	JSON           []byte // the whole object with its resourceVersion, no newline at the end

	form *form // nil: the log holds the value as it is
	memo atomic.Pointer[memo]
}

// metadataStart is where every stored value is spliced; kind and apiVersion come before
// it and cannot contain it, because a quote in a JSON string is escaped.
var metadataStart = []byte(`"metadata":{`)

// Splice returns value with "resourceVersion":"revision" as the first field of its
// metadata. A value that is not laid out as the package says is returned as it is.
func Splice(value []byte, revision int64) []byte {
	i := bytes.Index(value, metadataStart)
	if i < 0 {
		return value
	}
	i += len(metadataStart)
	out := make([]byte, 0, len(value)+len(`"resourceVersion":"",`)+20)
	out = append(out, value[:i]...)
	out = append(out, `"resourceVersion":"`...)
	out = strconv.AppendInt(out, revision, 10)
	out = append(out, '"')
	if value[i] != '}' {
		out = append(out, ',')
	}
	return append(out, value[i:]...)
}

// Unsplice returns e's object as a value to store: without its resourceVersion.
func Unsplice(e *Entry) []byte {
	if e.Unreadable() != nil {
		return nil
	}
	field := `"resourceVersion":"` + strconv.FormatInt(e.Revision, 10) + `"`
	i := bytes.Index(e.JSON, metadataStart) + len(metadataStart)
	if !bytes.HasPrefix(e.JSON[i:], []byte(field)) {
		return e.JSON
	}
	rest := bytes.TrimPrefix(e.JSON[i+len(field):], []byte{','})
	return append(e.JSON[:i:i], rest...)
}

// NewEntry makes the entry that readers of row see.
func NewEntry(row *Row) *Entry {
	return &Entry{
		Key:            row.Key,
		Revision:       row.Revision,
		CreateRevision: row.CreateRevision,
		At:             row.At,
		JSON:           Splice(row.Value, row.Revision),
	}
}

// AtRevision returns a copy of e that names another revision: what a watcher sees of an
// object that a change took out of its selection.
func (e *Entry) AtRevision(revision int64) *Entry {
	return &Entry{
		Key:            e.Key,
		Revision:       revision,
		CreateRevision: e.CreateRevision,
		At:             e.At,
		JSON:           Splice(Unsplice(e), revision),
		form:           e.form,
	}
}

// Item returns the object without its kind and apiVersion, in two parts to be written
// one after the other: what an item of a built-in list looks like on the wire.
func (e *Entry) Item() (open, rest []byte) { return WithoutType(e.JSON) }

// WithoutType is Item for an object's JSON that begins as stored values do.
func WithoutType(object []byte) (open, rest []byte) {
	return openBrace, object[bytes.Index(object, metadataStart):]
}

var openBrace = []byte{'{'}

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
