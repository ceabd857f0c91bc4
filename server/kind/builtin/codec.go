package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind"
)

// codec is a kind.Codec on upstream's scheme. Decode, Load and Encode have a short cut for
// nearly all requests: JSON of the expected version. The short cut skips upstream's separate
// pass over the body that only looks for kind and apiVersion, and converts once, straight into
// an object of the right type. Everything else goes through upstream's codec.
type codec struct {
	scheme   *runtime.Scheme
	decoders *decoders
	group    string
	hub      schema.GroupVersionKind
	stored   schema.GroupVersionKind
	header   []byte                                  // the first bytes of a stored object
	prune    func(obj runtime.Object) runtime.Object // leaves out what Encode does not encode; nil: nothing
}

// pruning is a codec for a literal that encodes objects as prune returns them. The group
// completes the codec.
func pruning(prune func(obj runtime.Object) runtime.Object) *codec { return &codec{prune: prune} }

func newCodec(scheme *runtime.Scheme, group, kindName string, stored schema.GroupVersionKind) *codec {
	return &codec{
		scheme:   scheme,
		decoders: decodersOf(scheme, group),
		group:    group,
		hub:      schema.GroupVersionKind{Group: group, Version: runtime.APIVersionInternal, Kind: kindName},
		stored:   stored,
		header:   append(kind.HeadOf(stored), `"metadata":{`...),
	}
}

// New returns an empty object of upstream's internal version.
func (c *codec) New() runtime.Object { return c.newInternal(c.hub.Kind) }

// NewList returns an empty list of upstream's internal version.
func (c *codec) NewList() runtime.Object { return c.newInternal(c.hub.Kind + "List") }

func (c *codec) newInternal(kind string) runtime.Object {
	obj, err := c.scheme.New(c.hub.GroupVersion().WithKind(kind))
	if err != nil {
		panic(err) // a Kind of this package without a type: every test would fail
	}
	return obj
}

// NewVersioned returns an empty object of a version.
func (c *codec) NewVersioned(gv schema.GroupVersion) (runtime.Object, error) {
	return c.scheme.New(gv.WithKind(c.hub.Kind))
}

// Decode follows upstream's create and update handlers: the serializer of the media type,
// strict or not, then defaults, then conversion.
func (c *codec) Decode(body []byte, mediaType string, def schema.GroupVersionKind, strict bool) (runtime.Object, schema.GroupVersionKind, error) {
	if mediaType == runtime.ContentTypeJSON || mediaType == "" {
		if obj, strictErr, ok := c.decodeJSON(body, def, strict); ok {
			return obj, def, strictErr
		}
		mediaType = runtime.ContentTypeJSON
	}
	decoder, err := c.decoders.find(mediaType, strict)
	if err != nil {
		return nil, def, err
	}
	obj, gvk, err := decoder.Decode(body, &def, c.New())
	if gvk == nil { // the body names no kind; the error's wording depends on that
		gvk = &schema.GroupVersionKind{}
	}
	return obj, *gvk, err
}

// decodeJSON decodes a body of exactly the kind def. For any other body, or a faulty one, ok
// is false and upstream's codec makes the error.
func (c *codec) decodeJSON(body []byte, def schema.GroupVersionKind, strict bool) (obj runtime.Object, strictErr error, ok bool) {
	versioned, err := c.scheme.New(def)
	if err != nil {
		return nil, nil, false
	}
	if strict {
		unknown, err := kjson.UnmarshalStrict(body, versioned)
		if err != nil {
			return nil, nil, false
		}
		if len(unknown) > 0 {
			strictErr = runtime.NewStrictDecodingError(unknown)
		}
	} else if err := kjson.UnmarshalCaseSensitivePreserveInts(body, versioned); err != nil {
		return nil, nil, false
	}
	if versioned.GetObjectKind().GroupVersionKind() != def {
		return nil, nil, false
	}
	obj, err = c.Hub(versioned)
	return obj, strictErr, err == nil
}

// Hub fills defaults into obj and converts it.
func (c *codec) Hub(obj runtime.Object) (runtime.Object, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		versioned, err := c.scheme.New(u.GetObjectKind().GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.UnstructuredContent(), versioned); err != nil {
			return nil, err
		}
		obj = versioned
	}
	c.scheme.Default(obj)
	hub := c.New()
	if err := c.scheme.Convert(obj, hub, c.hub.GroupVersion()); err != nil {
		return nil, err
	}
	return hub, nil
}

// Versioned converts into a new object that shares maps and slices with obj.
func (c *codec) Versioned(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	gvk := gv.WithKind(c.hub.Kind)
	versioned, err := c.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := c.scheme.Convert(obj, versioned, gv); err != nil {
		return nil, err
	}
	versioned.GetObjectKind().SetGroupVersionKind(gvk)
	return versioned, nil
}

// Objects are all the scheme: it implements each of the interfaces.
func (c *codec) Objects(context.Context) kind.Objects {
	return kind.Objects{Creater: c.scheme, Typer: c.scheme, Defaulter: c.scheme, Convertor: c.scheme}
}

// Encode encodes the storage version. It clears the resourceVersion and sets defaults in a
// copy, so obj may be read concurrently. Fields are in the order of the Go types: kind and
// apiVersion, then metadata, in every kind.
func (c *codec) Encode(obj runtime.Object) ([]byte, error) {
	if c.prune != nil {
		obj = c.prune(obj)
	}
	versioned, err := c.Versioned(obj, c.stored.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("encode %s for the log: %w", c.hub.Kind, err)
	}
	versioned = versioned.DeepCopyObject() // it shares maps and lists with obj
	c.scheme.Default(versioned)            // as upstream does when it reads back what it has written
	accessor, err := meta.Accessor(versioned)
	if err != nil {
		return nil, fmt.Errorf("encode %s for the log: %w", c.hub.Kind, err)
	}
	accessor.SetResourceVersion("")
	accessor.SetSelfLink("") // as upstream's storage does
	value, err := encodeJSON(versioned)
	if err == nil && c.scheme == legacyscheme.Scheme && bytes.Contains(value, []byte(":[]")) {
		value, err = c.throughProtobuf(versioned)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s for the log: %w", c.hub.Kind, err)
	}
	return value, nil
}

func encodeJSON(obj runtime.Object) ([]byte, error) {
	e := encoders.Get().(*encoder)
	defer e.put()
	if err := e.json.Encode(obj); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimSuffix(e.buf.Bytes(), []byte("\n"))), nil
}

// throughProtobuf encodes an object as upstream would read it back. Upstream stores protobuf,
// which does not distinguish empty lists from absent ones: empty required lists become null.
func (c *codec) throughProtobuf(obj runtime.Object) ([]byte, error) {
	read, err := c.scheme.New(c.stored)
	if err != nil {
		return nil, err
	}
	b, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		return nil, err
	}
	if err := read.(interface{ Unmarshal([]byte) error }).Unmarshal(b); err != nil {
		return nil, err
	}
	hub, err := c.Hub(read)
	if err != nil {
		return nil, err
	}
	if read, err = c.Versioned(hub, c.stored.GroupVersion()); err != nil { // which completes templates of claims
		return nil, err
	}
	return encodeJSON(read)
}

// Load decodes the result of Encode. An object that another release has stored in another
// version is decoded by upstream's codec.
func (c *codec) Load(data []byte) (runtime.Object, error) {
	if !bytes.HasPrefix(data, c.header) {
		return c.loadAny(data)
	}
	versioned, err := c.scheme.New(c.stored)
	if err != nil { // which is no fault of what is stored
		return nil, fmt.Errorf("decode %s of the log: %w", c.hub.Kind, err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, versioned); err != nil {
		return nil, &kind.UndecodableError{Kind: c.hub.Kind, Err: err}
	}
	return c.Hub(versioned)
}

func (c *codec) loadAny(data []byte) (runtime.Object, error) {
	decoder, err := c.decoders.find(runtime.ContentTypeJSON, false)
	if err != nil {
		return nil, err
	}
	obj, _, err := decoder.Decode(data, &c.stored, c.New())
	if err != nil {
		return nil, &kind.UndecodableError{Kind: c.hub.Kind, Err: err}
	}
	return obj, nil
}

// encoder is a JSON encoder with the buffer it writes to.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

// maxPooled is the largest buffer that is kept for later use, in bytes.
const maxPooled = 1 << 20

var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	e.json = json.NewEncoder(&e.buf)
	return e
}}

func (e *encoder) put() {
	if e.buf.Cap() <= maxPooled {
		e.buf.Reset()
		encoders.Put(e)
	}
}

// decoders are upstream's decoders into one group's internal version, by media type and
// strictness. The Kinds of a group share them.
type decoders struct {
	byType map[string]runtime.Decoder
}

type decodersKey struct {
	scheme *runtime.Scheme
	group  string
}

var decodersCache sync.Map // decodersKey to *decoders

func decodersOf(scheme *runtime.Scheme, group string) *decoders {
	key := decodersKey{scheme, group}
	if d, ok := decodersCache.Load(key); ok {
		return d.(*decoders)
	}
	factory := serializer.NewCodecFactory(scheme, serializer.WithSerializer(cbor.NewSerializerInfo))
	hub := schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}
	d := &decoders{byType: map[string]runtime.Decoder{}}
	for _, info := range factory.SupportedMediaTypes() {
		strict := info.StrictSerializer
		if strict == nil {
			strict = info.Serializer
		}
		d.byType[decoderKey(info.MediaType, false)] = factory.DecoderToVersion(info.Serializer, hub)
		d.byType[decoderKey(info.MediaType, true)] = factory.DecoderToVersion(strict, hub)
	}
	decodersCache.Store(key, d)
	return d
}

func decoderKey(mediaType string, strict bool) string {
	return mediaType + ";strict=" + strconv.FormatBool(strict)
}

func (d *decoders) find(mediaType string, strict bool) (runtime.Decoder, error) {
	if decoder, ok := d.byType[decoderKey(mediaType, strict)]; ok {
		return decoder, nil
	}
	return nil, fmt.Errorf("no decoder for media type %q", mediaType)
}
