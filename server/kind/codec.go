package kind

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects are the parts of a codec that upstream's admission plugins use; see
// admission.ObjectInterfaces.
type Objects struct {
	Creater   runtime.ObjectCreater
	Typer     runtime.ObjectTyper
	Defaulter runtime.ObjectDefaulter
	Convertor runtime.ObjectConvertor
}

// Codec translates between bytes and objects in hub form: the form that strategies, Attrs
// and Table work on. Hub form is upstream's internal version for built-in kinds, and an
// unstructured object for custom resources. Implementations: builtin, custom.
type Codec interface {
	// New returns an empty object in hub form.
	New() runtime.Object

	// NewList returns an empty list of objects in hub form.
	NewList() runtime.Object

	// NewVersioned returns an empty object of a version. Converting the result of New would
	// not give the same: a pointer in a version may be a plain number in hub form.
	NewVersioned(gv schema.GroupVersion) (runtime.Object, error)

	// Decode reads a request body into hub form, with defaults filled in. def fills in a
	// kind or apiVersion that the body lacks; gvk is the result. With strict, unknown and
	// duplicate fields are returned as an error for which runtime.IsStrictDecodingError
	// holds, together with the object.
	Decode(body []byte, mediaType string, def schema.GroupVersionKind, strict bool) (obj runtime.Object, gvk schema.GroupVersionKind, err error)

	// Versioned converts an object from hub form to a version and sets its kind and
	// apiVersion. The result may share memory with obj.
	Versioned(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error)

	// Hub converts an object of any version to hub form, with defaults filled in. The result
	// may share memory with obj.
	Hub(obj runtime.Object) (runtime.Object, error)

	// Objects is for upstream's admission plugins, which read and change objects of the kind
	// in any version and in hub form. Conversions by webhooks end when ctx does.
	Objects(ctx context.Context) Objects

	// Encode encodes an object in hub form for the log: JSON of the storage version without
	// resourceVersion, in the layout that sqlstore requires.
	Encode(obj runtime.Object) ([]byte, error)

	// Load decodes the result of Encode, with or without a resourceVersion spliced in, to
	// hub form. The object is the caller's own.
	Load(json []byte) (runtime.Object, error)
}
