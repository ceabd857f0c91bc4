package custom

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind"
)

// codec is the kind.Codec of one version of a definition. Hub form is the unstructured object
// in this version.
type codec struct {
	gvk      schema.GroupVersionKind
	listKind string
	stored   schema.GroupVersionKind
	use      func() (*serving, error)
}

// typer reads the kind of an object from the object.
var typer = crdserverscheme.NewUnstructuredObjectTyper()

// creater makes empty objects of any kind.
type creater struct{}

func (creater) New(gvk schema.GroupVersionKind) (runtime.Object, error) { return empty(gvk), nil }

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// New returns an object with only kind and apiVersion.
func (c *codec) New() runtime.Object { return empty(c.gvk) }

// NewList returns a list with only kind and apiVersion.
func (c *codec) NewList() runtime.Object {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.gvk.GroupVersion().WithKind(c.listKind))
	return list
}

// NewVersioned does what New does: this codec has one version.
func (c *codec) NewVersioned(schema.GroupVersion) (runtime.Object, error) { return c.New(), nil }

// decoders are upstream's, by media type and strictness. That of CBOR always refuses a field that is
// there twice.
var decoders = map[string][2]runtime.Decoder{
	runtime.ContentTypeJSON: {newSerializer(false, false), newSerializer(false, true)},
	runtime.ContentTypeYAML: {newSerializer(true, false), newSerializer(true, true)},
	runtime.ContentTypeCBOR: {cborDecoder, cborDecoder},
}

var cborDecoder = cbor.NewSerializer(creater{}, typer)

func newSerializer(yaml, strict bool) *jsonserializer.Serializer {
	options := jsonserializer.SerializerOptions{Yaml: yaml, Strict: strict}
	return jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, creater{}, typer, options)
}

// Decode decodes a body, prunes it and fills in the defaults of its version.
func (c *codec) Decode(body []byte, mediaType string, def schema.GroupVersionKind, strict bool) (runtime.Object, schema.GroupVersionKind, error) {
	s, err := c.use()
	if err != nil {
		return nil, def, err
	}
	u, faults := decodeJSON(body, mediaType, def, strict)
	if u == nil {
		var gvk schema.GroupVersionKind
		if u, gvk, faults, err = decodeAny(body, mediaType, def, strict); err != nil {
			return nil, gvk, err
		}
		def = gvk
	}
	// As in upstream, unknown fields are not reported of CBOR (unstructuredNegotiatedSerializer).
	unknown, err := s.schemas.coerce(u, coercion{report: strict && mediaType != runtime.ContentTypeCBOR})
	if err != nil {
		return nil, def, err
	}
	if err := s.schemas.fill(u); err != nil {
		return nil, def, err
	}
	for _, path := range unknown {
		faults = append(faults, unknownField(path))
	}
	if len(faults) > 0 {
		return u, def, runtime.NewStrictDecodingError(faults)
	}
	return u, def, nil
}

// decodeAny decodes with upstream's serializer and returns the kind that the body names.
// faults are the errors of strict decoding only.
func decodeAny(body []byte, mediaType string, def schema.GroupVersionKind, strict bool) (u *unstructured.Unstructured, gvk schema.GroupVersionKind, faults []error, err error) {
	decoder := decoders[mediaType][0]
	if strict {
		decoder = decoders[mediaType][1]
	}
	if decoder == nil {
		return nil, def, nil, fmt.Errorf("no decoder for media type %q", mediaType)
	}
	u = &unstructured.Unstructured{}
	_, named, err := decoder.Decode(body, &def, u)
	if named != nil {
		gvk = *named
	}
	if mediaType == runtime.ContentTypeCBOR {
		kind.ValidText(u.Object)
	}
	if twice, ok := runtime.AsStrictDecodingError(err); ok {
		return u, gvk, twice.Errors(), nil
	}
	return u, gvk, nil, err
}

// decodeJSON decodes a body of the expected kind without upstream's separate pass that only
// looks for kind and apiVersion. It returns nil for any other body.
func decodeJSON(body []byte, mediaType string, def schema.GroupVersionKind, strict bool) (*unstructured.Unstructured, []error) {
	if mediaType != runtime.ContentTypeJSON {
		return nil, nil
	}
	object := map[string]any{}
	var faults []error
	var err error
	if strict {
		faults, err = kjson.UnmarshalStrict(body, &object)
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(body, &object)
	}
	if err != nil || object["kind"] != def.Kind || object["apiVersion"] != def.GroupVersion().String() {
		return nil, nil
	}
	for name := range object { // upstream's pass ignores case
		if strings.EqualFold(name, "kind") && name != "kind" || strings.EqualFold(name, "apiVersion") && name != "apiVersion" {
			return nil, nil
		}
	}
	return &unstructured.Unstructured{Object: object}, faults
}

// Versioned returns the object itself, which is in the only version of this codec.
func (c *codec) Versioned(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	if gv != c.gvk.GroupVersion() {
		return nil, fmt.Errorf("%s is not served as %s here", c.gvk, gv)
	}
	return obj, nil
}

// Hub returns obj.
func (c *codec) Hub(obj runtime.Object) (runtime.Object, error) { return obj, nil }

// Objects treats every object as unstructured.
func (c *codec) Objects(ctx context.Context) kind.Objects {
	u := &use{serving: c.use}
	return kind.Objects{Creater: creater{}, Typer: typer, Defaulter: lateDefaulter{u}, Convertor: lateConverter{ctx, u}}
}

// Encode converts the object to the storage version, prunes it, fills in that version's
// defaults and encodes it.
func (c *codec) Encode(obj runtime.Object) ([]byte, error) {
	s, err := c.use()
	if err != nil {
		return nil, err
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("encode %s for the log: it is a %T", c.gvk.Kind, obj)
	}
	if u, err = s.to(context.Background(), c.stored.GroupVersion(), u); err != nil {
		return nil, err
	}
	if _, err := s.schemas.coerce(u, coercion{stored: true}); err != nil {
		return nil, fmt.Errorf("encode %s for the log: %w", c.gvk.Kind, err)
	}
	if err := s.schemas.fill(u); err != nil {
		return nil, err
	}
	value, err := encodeStored(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s for the log: %w", c.gvk.Kind, err)
	}
	return value, nil
}

// to converts an object and prunes the result. An object in the right version is returned
// as it is. A call to a webhook ends when ctx does.
func (s *serving) to(ctx context.Context, gv schema.GroupVersion, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.GroupVersionKind().GroupVersion() == gv {
		return u, nil
	}
	obj, err := s.convert.to(ctx, u, gv)
	if err != nil {
		return nil, err
	}
	converted, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("conversion to %s gave a %T", gv, obj)
	}
	_, err = s.schemas.coerce(converted, coercion{})
	return converted, err
}

// Load decodes the result of Encode, also of one under an earlier schema: unknown fields are
// pruned and defaults are filled in by the present schema.
func (c *codec) Load(data []byte) (runtime.Object, error) {
	s, err := c.use()
	if err != nil {
		return nil, err
	}
	u, err := c.decodeStored(s, data)
	if err != nil {
		return nil, err
	}
	if u, err = s.to(context.Background(), c.gvk.GroupVersion(), u); err != nil {
		return nil, err
	}
	return u, nil
}

// decodeStored does what Load does, without conversion.
func (c *codec) decodeStored(s *serving, data []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &u.Object); err != nil {
		return nil, &kind.UndecodableError{Kind: c.gvk.Kind, Err: err}
	}
	if _, err := s.schemas.coerce(u, coercion{stored: true}); err != nil {
		return nil, &kind.UndecodableError{Kind: c.gvk.Kind, Err: err}
	}
	return u, s.schemas.fill(u)
}
