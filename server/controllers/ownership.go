package controllers

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownership is the part of an object's metadata that the garbage collector reads, as raw JSON; nil for a
// missing field. Most objects have only a uid.
type ownership struct {
	uid               []byte
	deletionTimestamp []byte
	ownerReferences   []byte
	finalizers        []byte
}

// ownershipOf cuts the fields out of a stored object without decoding it: this runs for
// every write on the server.
func ownershipOf(object []byte) (o ownership) {
	metadataFields(object, func(name, value []byte) {
		switch string(name) {
		case "uid":
			o.uid = value
		case "deletionTimestamp":
			o.deletionTimestamp = value
		case "ownerReferences":
			o.ownerReferences = value
		case "finalizers":
			o.finalizers = value
		}
	})
	return o
}

func (o *ownership) equal(p *ownership) bool {
	return bytes.Equal(o.uid, p.uid) && bytes.Equal(o.deletionTimestamp, p.deletionTimestamp) &&
		bytes.Equal(o.ownerReferences, p.ownerReferences) && bytes.Equal(o.finalizers, p.finalizers)
}

func (o *ownership) id() types.UID { return types.UID(bytes.Trim(o.uid, `"`)) }

// decode writes the fields into m. This server has encoded the stored JSON, so there are no errors to expect;
// a field that cannot be read counts as missing.
func (o *ownership) decode(m *metav1.ObjectMeta) {
	m.UID = o.id()
	field := func(raw []byte, v any) {
		if raw != nil {
			_ = json.Unmarshal(raw, v)
		}
	}
	field(o.deletionTimestamp, &m.DeletionTimestamp)
	field(o.ownerReferences, &m.OwnerReferences)
	field(o.finalizers, &m.Finalizers)
}

var metadataStart = []byte(`"metadata":{`)

// metadataFields calls f with the name and the raw value of each field of a stored object's metadata. Stored
// values are compact JSON in the layout that package sqlstore defines.
func metadataFields(object []byte, f func(name, value []byte)) {
	i := bytes.Index(object, metadataStart)
	if i < 0 {
		return
	}
	rest := object[i+len(metadataStart):]
	for len(rest) > 0 && rest[0] == '"' {
		n := stringEnd(rest)
		if n >= len(rest) || rest[n] != ':' {
			return
		}
		name := rest[1 : n-1]
		rest = rest[n+1:]
		n = valueEnd(rest)
		f(name, rest[:n])
		if n == len(rest) || rest[n] != ',' {
			return
		}
		rest = rest[n+1:]
	}
}

// stringEnd returns the length of the JSON string with which b begins.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			break
		}
		i += j
		if !escaped(b[:i]) {
			return i + 1
		}
	}
	return len(b)
}

// escaped reports whether the quote after b is escaped.
func escaped(b []byte) bool {
	n := len(b) - len(bytes.TrimRight(b, `\`))
	return n%2 == 1
}

// valueEnd returns the length of the JSON value with which b begins.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}
