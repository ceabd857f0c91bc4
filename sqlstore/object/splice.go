package object

import (
	"bytes"
	"strconv"

	"github.com/plinth-io/plinth/sqlstore"
)

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
func Unsplice(e *sqlstore.Entry) []byte {
	if e.Unreadable() != nil {
		return nil
	}
	return unsplice(e.Value, e.Revision)
}

func unsplice(object []byte, revision int64) []byte {
	field := `"resourceVersion":"` + strconv.FormatInt(revision, 10) + `"`
	i := bytes.Index(object, metadataStart) + len(metadataStart)
	if !bytes.HasPrefix(object[i:], []byte(field)) {
		return object
	}
	rest := bytes.TrimPrefix(object[i+len(field):], []byte{','})
	return append(object[:i:i], rest...)
}

// Tombstone is the change that ends an object, with current as its last state. The stored
// form of an unreadable object stays as it is.
func Tombstone(current *sqlstore.Entry) sqlstore.Change { return current.Ends(Unsplice(current)) }

// AtRevision returns a copy of e that names another revision: what a watcher sees of an
// object that a change took out of its selection.
func AtRevision(e *sqlstore.Entry, revision int64) *sqlstore.Entry {
	return e.With(revision, Splice(Unsplice(e), revision))
}

// WithoutType returns an object, whose JSON begins as stored values do, without its kind and apiVersion, in two parts
// to be written one after the other: what an item of a built-in list looks like on the wire.
func WithoutType(object []byte) (open, rest []byte) {
	return openBrace, object[max(bytes.Index(object, metadataStart), 1):] // that of a damaged one as it is
}

var openBrace = []byte{'{'}
