package response

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// An entry is rendered once for each encoding that is asked for. The bytes are kept with the
// entry (sqlstore.Entry.Memo) and shared by gets, lists and watches. JSON in the storage version
// needs no rendering: it is what the entry holds.

// Rendering is one encoding of entries.
type Rendering struct {
	key  any // among an entry's memos
	make func(e *sqlstore.Entry) ([]byte, error)
}

// rendered is a memo's value: err is kept too, because a second try gives the same.
type rendered struct {
	bytes []byte
	err   error
}

// Of returns the entry's bytes, which nobody may write to.
func (r *Rendering) Of(e *sqlstore.Entry) ([]byte, error) {
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
		encoding Encoding
		gone     <-chan struct{}
	}
	metadataKey struct {
		gv       schema.GroupVersion
		encoding Encoding
	}
)

// ObjectRendering is the whole object in a version: as JSON, as a protobuf message without the
// envelope, or as CBOR without the tag and, as in a list, with a type only if items have one.
func ObjectRendering(k *kind.Kind, version string, encoding Encoding) *Rendering {
	gv := schema.GroupVersion{Group: k.Group, Version: version}
	marshal := json.Marshal
	switch encoding {
	case Protobuf:
		marshal = marshalProtobuf
	case CBOR:
		marshal = marshalCBOR
	}
	return &Rendering{objectKey{gv, encoding, k.Gone()}, func(e *sqlstore.Entry) ([]byte, error) {
		obj, err := versioned(k, e, gv)
		if err != nil {
			return nil, err
		}
		if encoding == CBOR && !k.TypedItems {
			obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
		return marshal(obj)
	}}
}

// IsStoredAs tells whether an entry's own JSON is the object in a version.
func IsStoredAs(k *kind.Kind, e *sqlstore.Entry, version string) bool {
	if IsConverted(k, e) {
		return true
	}
	return version == k.Stored.Version && k.Group == k.Stored.Group && !k.Stale(e.Value, e.Revision, e.At)
}

// Object returns the whole object in a version, as bodies and events contain it.
func Object(k *kind.Kind, e *sqlstore.Entry, version string, encoding Encoding) ([]byte, error) {
	if encoding == JSON && IsStoredAs(k, e, version) {
		return e.Value, nil
	}
	b, err := ObjectRendering(k, version, encoding).Of(e)
	if err != nil {
		return nil, err
	}
	switch apiVersion := k.GVK(version).GroupVersion().String(); {
	case encoding == Protobuf:
		return Envelope(apiVersion, k.Kind, b)
	case encoding == CBOR && k.TypedItems:
		return SelfDescribed(b), nil
	case encoding == CBOR:
		return WithTypeCBOR(apiVersion, k.Kind, b)
	}
	return b, nil
}

func versioned(k *kind.Kind, e *sqlstore.Entry, gv schema.GroupVersion) (runtime.Object, error) {
	hub, err := Load(k, e)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", e.Key, err)
	}
	return k.Codec.Versioned(hub, gv)
}

// MetadataRendering is the object's PartialObjectMetadata in JSON, its protobuf message, or CBOR
// without the tag.
func MetadataRendering(k *kind.Kind, gv schema.GroupVersion, encoding Encoding) *Rendering {
	makes := metadataText
	switch encoding {
	case Protobuf:
		makes = metadataMessage
	case CBOR:
		makes = metadataItem
	}
	return &Rendering{metadataKey{gv, encoding}, func(e *sqlstore.Entry) ([]byte, error) { return makes(k, e, gv) }}
}

// ObjectMetadata returns the object's PartialObjectMetadata, as bodies and events contain it.
func ObjectMetadata(k *kind.Kind, e *sqlstore.Entry, gv schema.GroupVersion, encoding Encoding) ([]byte, error) {
	b, err := MetadataRendering(k, gv, encoding).Of(e)
	switch {
	case err != nil || encoding == JSON:
		return b, err
	case encoding == CBOR:
		return SelfDescribed(b), nil
	}
	return Envelope(gv.String(), "PartialObjectMetadata", b)
}

func metadataText(k *kind.Kind, e *sqlstore.Entry, gv schema.GroupVersion) ([]byte, error) {
	meta, err := metadataOf(k, e)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(meta)+96)
	b = append(b, `{"kind":"PartialObjectMetadata","apiVersion":"`...)
	b = append(b, gv.String()...)
	b = append(b, `","metadata":`...)
	return append(append(b, meta...), '}'), nil
}

func metadataItem(k *kind.Kind, e *sqlstore.Entry, gv schema.GroupVersion) ([]byte, error) {
	partial, err := partialOf(k, e)
	if err != nil {
		return nil, err
	}
	partial.SetGroupVersionKind(gv.WithKind("PartialObjectMetadata"))
	return marshalCBOR(partial)
}

func metadataMessage(k *kind.Kind, e *sqlstore.Entry, _ schema.GroupVersion) ([]byte, error) {
	partial, err := partialOf(k, e)
	if err != nil {
		return nil, err
	}
	return partial.Marshal()
}

// partialOf is an object's metadata without a type.
func partialOf(k *kind.Kind, e *sqlstore.Entry) (*metav1.PartialObjectMetadata, error) {
	meta, err := metadataOf(k, e)
	if err != nil {
		return nil, err
	}
	partial := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(meta, &partial.ObjectMeta); err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", e.Key, err)
	}
	return partial, nil
}

// metadataOf returns an object's metadata without what depends on the object's version.
func metadataOf(k *kind.Kind, e *sqlstore.Entry) ([]byte, error) {
	meta := MetadataJSON(e.Value)
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

// Metadata is the PartialObjectMetadata of an object that is not in the log.
func Metadata(obj runtime.Object, gv schema.GroupVersion) (*metav1.PartialObjectMetadata, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	partial := meta.AsPartialObjectMetadata(m)
	partial.APIVersion, partial.Kind = gv.String(), "PartialObjectMetadata"
	return partial, nil
}

// labelsKey is where an entry keeps its labels.
type labelsKey struct{}

// Labels reads an entry's labels, once.
func Labels(e *sqlstore.Entry) (labels.Set, error) {
	v := e.Memo(labelsKey{}, func() any {
		var meta struct {
			Labels map[string]string `json:"labels"`
		}
		if err := json.Unmarshal(MetadataJSON(e.Value), &meta); err != nil {
			return fmt.Errorf("labels of %s: %w", e.Key, err)
		}
		return labels.Set(meta.Labels)
	})
	if err, ok := v.(error); ok {
		return nil, err
	}
	return v.(labels.Set), nil
}

// MetadataJSON cuts the value of metadata out of a stored object, from its opening brace to the
// brace that closes it.
func MetadataJSON(object []byte) []byte {
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

// Encode encodes an object of the API machinery itself (Status, Table, …), whose kind
// and apiVersion are set.
func Encode(obj runtime.Object, out Output) ([]byte, error) {
	if out.MediaType == MediaProtobuf {
		raw, err := marshalProtobuf(obj)
		if err != nil {
			return nil, err
		}
		gvk := obj.GetObjectKind().GroupVersionKind()
		return Envelope(gvk.GroupVersion().String(), gvk.Kind, raw)
	}
	if out.MediaType == MediaCBOR {
		b, err := marshalCBOR(obj)
		return SelfDescribed(b), err
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return Finish(b, out)
}

// Finish turns finished JSON into what was negotiated: indented, YAML, or with the newline
// that upstream ends every JSON body with.
func Finish(b []byte, out Output) ([]byte, error) {
	switch {
	case out.MediaType == MediaYAML:
		return yaml.JSONToYAML(b)
	case out.Pretty:
		var buf bytes.Buffer
		if err := json.Indent(&buf, b, "", "  "); err != nil {
			return nil, err
		}
		b = buf.Bytes()
		return b, nil
	}
	return append(b[:len(b):len(b)], '\n'), nil
}
