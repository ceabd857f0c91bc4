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

// rendering is one encoding of entries.
type rendering struct {
	key  any // among an entry's memos
	make func(e *sqlstore.Entry) ([]byte, error)
}

// rendered is a memo's value: err is kept too, since trying again gives the same.
type rendered struct {
	bytes []byte
	err   error
}

// of returns the entry's bytes, which nobody may write to.
func (r *rendering) of(e *sqlstore.Entry) ([]byte, error) {
	v, ok := e.Recall(r.key)
	if !ok {
		v = e.Memo(r.key, func() any {
			b, err := r.make(e)
			return &rendered{b, err}
		})
	}
	x := v.(*rendered)
	return x.bytes, x.err
}

// objectKey and metadataKey name renderings among an entry's memos. What a custom resource
// looks like depends on its Kind, which a new schema replaces.
type (
	objectKey struct {
		gv       schema.GroupVersion
		protobuf bool
		gone     <-chan struct{}
	}
	metadataKey struct {
		gv       schema.GroupVersion
		protobuf bool
	}
)

// objectRendering is the whole object in a version, as JSON or as a protobuf message
// without the envelope.
func objectRendering(k *kind.Kind, version string, protobuf bool) *rendering {
	gv := schema.GroupVersion{Group: k.Group, Version: version}
	marshal := marshalJSON
	if protobuf {
		marshal = marshalProtobuf
	}
	return &rendering{objectKey{gv, protobuf, k.Gone}, func(e *sqlstore.Entry) ([]byte, error) {
		obj, err := versioned(k, e, gv)
		if err != nil {
			return nil, err
		}
		return marshal(obj)
	}}
}

// asStored tells whether an entry's own JSON is the object in a version.
func asStored(k *kind.Kind, e *sqlstore.Entry, version string) bool {
	if isConverted(k, e) {
		return true
	}
	return version == k.Stored.Version && k.Group == k.Stored.Group && (k.Stale == nil || !k.Stale(e.JSON, e.Revision, e.At))
}

// objectJSON returns the whole object as JSON in a version.
func objectJSON(k *kind.Kind, e *sqlstore.Entry, version string) ([]byte, error) {
	if asStored(k, e, version) {
		return e.JSON, nil
	}
	return objectRendering(k, version, false).of(e)
}

// objectProtobuf returns the object's protobuf message without the envelope.
func objectProtobuf(k *kind.Kind, e *sqlstore.Entry, version string) ([]byte, error) {
	return objectRendering(k, version, true).of(e)
}

func versioned(k *kind.Kind, e *sqlstore.Entry, gv schema.GroupVersion) (runtime.Object, error) {
	hub, err := loadEntry(k, e)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", e.Key, err)
	}
	return k.Codec.Versioned(hub, gv)
}

// metadataRendering is the object's PartialObjectMetadata in JSON, or its protobuf message.
func metadataRendering(k *kind.Kind, gv schema.GroupVersion, protobuf bool) *rendering {
	key := metadataKey{gv, protobuf}
	if protobuf {
		return &rendering{key, func(e *sqlstore.Entry) ([]byte, error) { return metadataMessage(k, e) }}
	}
	return &rendering{key, func(e *sqlstore.Entry) ([]byte, error) {
		meta, err := metadataOf(k, e)
		if err != nil {
			return nil, err
		}
		b := make([]byte, 0, len(meta)+96)
		b = append(b, `{"kind":"PartialObjectMetadata","apiVersion":"`...)
		b = append(b, gv.String()...)
		b = append(b, `","metadata":`...)
		return append(append(b, meta...), '}'), nil
	}}
}

func metadataMessage(k *kind.Kind, e *sqlstore.Entry) ([]byte, error) {
	meta, err := metadataOf(k, e)
	if err != nil {
		return nil, err
	}
	var partial metav1.PartialObjectMetadata
	if err := json.Unmarshal(meta, &partial.ObjectMeta); err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", e.Key, err)
	}
	return partial.Marshal()
}

// metadataOf is the metadata of an object that is of no version.
func metadataOf(k *kind.Kind, e *sqlstore.Entry) ([]byte, error) {
	meta := metadataJSON(e.JSON)
	if k.VersionedAnnotation == "" {
		return meta, nil
	}
	var m metav1.ObjectMeta
	if err := json.Unmarshal(meta, &m); err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", e.Key, err)
	}
	delete(m.Annotations, k.VersionedAnnotation)
	return json.Marshal(m)
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
