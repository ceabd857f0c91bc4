package custom

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind"
)

// codec is kind.Codec for one version of a definition; the hub form is the unstructured
// object in this version.
type codec struct {
	gvk      schema.GroupVersionKind
	listKind string
	stored   schema.GroupVersionKind
	use      func() (*serving, error)
}

// typer tells the kind of an object from the object.
var typer = crdserverscheme.NewUnstructuredObjectTyper()

// creater makes empty objects of any kind.
type creater struct{}

func (creater) New(gvk schema.GroupVersionKind) (runtime.Object, error) { return empty(gvk), nil }

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// New returns an object with nothing but its kind and apiVersion.
func (c *codec) New() runtime.Object { return empty(c.gvk) }

// NewList returns a list with nothing but its kind and apiVersion.
func (c *codec) NewList() runtime.Object {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.gvk.GroupVersion().WithKind(c.listKind))
	return list
}

// NewVersioned is New: this codec has one version.
func (c *codec) NewVersioned(schema.GroupVersion) (runtime.Object, error) { return c.New(), nil }

// serializers are upstream's, by media type and strictness.
var serializers = map[string][2]*jsonserializer.Serializer{
	runtime.ContentTypeJSON: {newSerializer(false, false), newSerializer(false, true)},
	runtime.ContentTypeYAML: {newSerializer(true, false), newSerializer(true, true)},
}

func newSerializer(yaml, strict bool) *jsonserializer.Serializer {
	options := jsonserializer.SerializerOptions{Yaml: yaml, Strict: strict}
	return jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, creater{}, typer, options)
}

// Decode reads a body, prunes it and fills in the defaults of its version.
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
	unknown, err := s.schemas.coerce(u, coercion{report: strict})
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

// decodeAny decodes by upstream's serializer and tells what kind the body names. faults are
// what only strict decoding objects to.
func decodeAny(body []byte, mediaType string, def schema.GroupVersionKind, strict bool) (u *unstructured.Unstructured, gvk schema.GroupVersionKind, faults []error, err error) {
	serializer := serializers[mediaType][0]
	if strict {
		serializer = serializers[mediaType][1]
	}
	if serializer == nil {
		return nil, def, nil, fmt.Errorf("no decoder for media type %q", mediaType)
	}
	u = &unstructured.Unstructured{}
	_, named, err := serializer.Decode(body, &def, u)
	if named != nil {
		gvk = *named
	}
	if twice, ok := runtime.AsStrictDecodingError(err); ok {
		return u, gvk, twice.Errors(), nil
	}
	return u, gvk, nil, err
}

// decodeJSON is decodeAny for a body of the kind that is expected, without upstream's
// separate pass that only looks for kind and apiVersion; nil if the body is anything else.
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
	for name := range object { // which that pass would take for the ones it looks for
		if strings.EqualFold(name, "kind") && name != "kind" || strings.EqualFold(name, "apiVersion") && name != "apiVersion" {
			return nil, nil
		}
	}
	return &unstructured.Unstructured{Object: object}, faults
}

// Versioned returns the object itself, which is in the only version there is.
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

// Store encodes the object in the storage version as reading it would show it: pruned, and
// with the storage version's defaults.
func (c *codec) Store(obj runtime.Object) ([]byte, error) {
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

// to converts an object and prunes what comes out. An object that has the version already
// is returned as it is. ctx ends a call to a webhook.
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

// Load decodes what Store wrote, now or under an earlier schema: what the schema does not
// know any more is gone, and what it gives a default to has one.
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

// decodeStored is Load without the conversion.
func (c *codec) decodeStored(s *serving, data []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &u.Object); err != nil {
		return nil, fmt.Errorf("decode %s of the log: %w", c.gvk.Kind, err)
	}
	if _, err := s.schemas.coerce(u, coercion{stored: true}); err != nil {
		return nil, fmt.Errorf("decode %s of the log: %w", c.gvk.Kind, err)
	}
	return u, s.schemas.fill(u)
}
