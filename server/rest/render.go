package rest

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// An entry is rendered once for each encoding that somebody asked for, and the bytes are
// kept with it and shared by gets, lists and watches: see sqlstore.Entry.Memo. JSON in
// the storage version needs no rendering: it is what the entry holds.

// renderKey names one rendering among an entry's memos.
type renderKey struct {
	gv       schema.GroupVersion
	protobuf bool
}

// metadataKey names the PartialObjectMetadata renderings of an entry.
type metadataKey struct {
	gv       schema.GroupVersion
	protobuf bool
}

// rendered is a memo's value: err is kept too, since trying again gives the same.
type rendered struct {
	bytes []byte
	err   error
}

// objectJSON returns the whole object as JSON in a version.
func objectJSON(k *kind.Kind, e *sqlstore.Entry, version string) ([]byte, error) {
	if version == k.Stored.Version && k.Group == k.Stored.Group {
		return e.JSON, nil
	}
	return render(k, e, version, false)
}

// objectProtobuf returns the object's protobuf message without the envelope.
func objectProtobuf(k *kind.Kind, e *sqlstore.Entry, version string) ([]byte, error) {
	return render(k, e, version, true)
}

func render(k *kind.Kind, e *sqlstore.Entry, version string, protobuf bool) ([]byte, error) {
	gv := schema.GroupVersion{Group: k.Group, Version: version}
	r := e.Memo(renderKey{gv, protobuf}, func() any {
		obj, err := versioned(k, e, gv)
		if err != nil {
			return rendered{err: err}
		}
		marshal := marshalJSON
		if protobuf {
			marshal = marshalProtobuf
		}
		b, err := marshal(obj)
		return rendered{b, err}
	}).(rendered)
	return r.bytes, r.err
}

func versioned(k *kind.Kind, e *sqlstore.Entry, gv schema.GroupVersion) (runtime.Object, error) {
	hub, err := k.Codec.Load(e.JSON)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", e.Key, err)
	}
	return k.Codec.Versioned(hub, gv)
}

// metadataOf returns the object's PartialObjectMetadata in JSON, or its protobuf message.
func metadataOf(e *sqlstore.Entry, gv schema.GroupVersion, protobuf bool) ([]byte, error) {
	r := e.Memo(metadataKey{gv, protobuf}, func() any {
		meta := metadataJSON(e.JSON)
		if protobuf {
			var partial metav1.PartialObjectMetadata
			if err := json.Unmarshal(meta, &partial.ObjectMeta); err != nil {
				return rendered{err: fmt.Errorf("metadata of %s: %w", e.Key, err)}
			}
			b, err := partial.Marshal()
			return rendered{b, err}
		}
		b := make([]byte, 0, len(meta)+96)
		b = append(b, `{"kind":"PartialObjectMetadata","apiVersion":"`...)
		b = append(b, gv.String()...)
		b = append(b, `","metadata":`...)
		b = append(b, meta...)
		return rendered{append(b, '}'), nil}
	}).(rendered)
	return r.bytes, r.err
}

// metadataJSON cuts the value of metadata out of a stored object: from its opening brace
// to the one that closes it.
func metadataJSON(object []byte) []byte {
	start := bytes.Index(object, []byte(`"metadata":{`)) + len(`"metadata":`)
	depth, inString := 0, false
	for i := start; i < len(object); i++ {
		switch c := object[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return object[start : i+1]
			}
		}
	}
	return object[start:]
}

// marshalJSON encodes without escaping HTML differently from upstream and without the
// newline that an Encoder adds.
func marshalJSON(obj any) ([]byte, error) { return json.Marshal(obj) }

type protoMarshaler interface{ Marshal() ([]byte, error) }

func marshalProtobuf(obj any) ([]byte, error) {
	m, ok := obj.(protoMarshaler)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf encoding", obj)
	}
	return m.Marshal()
}

// protobufMagic opens every protobuf body of the API.
var protobufMagic = []byte("k8s\x00")

// envelope wraps a protobuf message as the API does on the wire.
func envelope(apiVersion, kind string, raw []byte) ([]byte, error) {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	size := unknown.Size()
	out := make([]byte, len(protobufMagic)+size)
	copy(out, protobufMagic)
	n, err := unknown.MarshalTo(out[len(protobufMagic):])
	return out[:len(protobufMagic)+n], err
}

// encodeMeta encodes an object of the API machinery itself (Status, Table, …), whose kind
// and apiVersion are set.
func encodeMeta(obj runtime.Object, out output) ([]byte, error) {
	if out.mediaType == mediaProtobuf {
		raw, err := marshalProtobuf(obj)
		if err != nil {
			return nil, err
		}
		gvk := obj.GetObjectKind().GroupVersionKind()
		return envelope(gvk.GroupVersion().String(), gvk.Kind, raw)
	}
	b, err := marshalJSON(obj)
	if err != nil {
		return nil, err
	}
	return dress(b, out)
}

// dress turns finished JSON into what was negotiated: indented, YAML, or with the newline
// that upstream ends every JSON body with.
func dress(b []byte, out output) ([]byte, error) {
	switch {
	case out.mediaType == mediaYAML:
		return yaml.JSONToYAML(b)
	case out.pretty:
		var buf bytes.Buffer
		if err := json.Indent(&buf, b, "", "  "); err != nil {
			return nil, err
		}
		b = buf.Bytes()
		return b, nil
	}
	return append(b[:len(b):len(b)], '\n'), nil
}
