package kind

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects are the parts of a codec in upstream's terms; see admission.ObjectInterfaces.
type Objects struct {
	Creater   runtime.ObjectCreater
	Typer     runtime.ObjectTyper
	Defaulter runtime.ObjectDefaulter
	Convertor runtime.ObjectConvertor
}

// Codec translates between bytes and objects in hub form: the form that rules, Attrs
// and Table work on (upstream's internal version for built-in kinds, unstructured for
// custom resources). Implementations: builtin, custom.
type Codec interface {
	// New returns an empty object in hub form.
	New() runtime.Object

	// NewList returns an empty list of objects in hub form.
	NewList() runtime.Object

	// NewVersioned returns an empty object of a version. It is emptier than New's,
	// converted: a pointer in a version may be a plain number in hub form.
	NewVersioned(gv schema.GroupVersion) (runtime.Object, error)

	// Decode reads a request body into hub form, with defaults filled in. def is the kind
	// assumed where the body names none; gvk is what the body named, after that. With
	// strict, unknown and duplicate fields come back as an error that
	// runtime.IsStrictDecodingError knows, together with the object.
	Decode(body []byte, mediaType string, def schema.GroupVersionKind, strict bool) (obj runtime.Object, gvk schema.GroupVersionKind, err error)

	// Versioned converts an object in hub form to the version; the result may share
	// memory with obj and has its kind and apiVersion set.
	Versioned(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error)

	// Hub converts an object of any version to hub form with defaults; it may share
	// memory.
	Hub(obj runtime.Object) (runtime.Object, error)

	// Objects returns what upstream's admission plugins look at objects with, and write
	// their changes with: any object of the kind, in any version and in hub form. ctx ends
	// what has to be waited for.
	Objects(ctx context.Context) Objects

	// Store encodes an object in hub form as the log holds it: the storage version's
	// JSON without resourceVersion, laid out as sqlstore asks.
	Store(obj runtime.Object) ([]byte, error)

	// Load decodes what Store wrote, with or without a resourceVersion spliced in, to
	// hub form that is the caller's own.
	Load(json []byte) (runtime.Object, error)
}
