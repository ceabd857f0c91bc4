package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CustomResource is what a Kind has if a CustomResourceDefinition made it.
type CustomResource struct {
	// Definition made the Kind, and those of the other versions.
	Definition *Definition
	// Gone is closed when the Kind is taken out of service or replaced by one that renders
	// objects differently. Then its watches end.
	Gone <-chan struct{}
	// Terminating says that nothing is created any more, because the definition is being
	// deleted.
	Terminating bool
	// Broken says that objects cannot be converted because of a mistake in the definition. Each
	// request is refused, and nothing but Lookup knows the Kind.
	Broken bool
	// Stale tells whether an object may have been stored before the schema changed, and so lack
	// defaults. at is the time of the commit in Unix milliseconds.
	Stale func(revision, at int64) bool
	// Conversion is set if a webhook converts between versions.
	Conversion *Conversion
}

// Gone returns the channel that is closed when the Kind goes; nil if it never does.
func (k *Kind) Gone() <-chan struct{} {
	if k.Custom == nil {
		return nil
	}
	return k.Custom.Gone
}

// Stale tells whether stored JSON may differ from what Codec.Load makes of it: it is in another version than
// Stored, or see CustomResource.
func (k *Kind) Stale(json []byte, revision, at int64) bool {
	return !bytes.HasPrefix(json, k.StoredHead) || k.Custom != nil && k.Custom.Stale(revision, at)
}

// HeadOf begins the JSON of objects that are stored as gvk.
func HeadOf(gvk schema.GroupVersionKind) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, gvk.Kind, gvk.GroupVersion().String())
}

// Conversion returns the webhook's part in reading and writing objects; nil if none calls
// one.
func (k *Kind) Conversion() *Conversion {
	if k.Custom == nil {
		return nil
	}
	return k.Custom.Conversion
}

// Definition is the CustomResourceDefinition of a Kind. The Kind holds no schemas; callers
// that need them call Read.
type Definition struct {
	// ID changes whenever the schemas or the names change. It is the same on every replica
	// and after a restart.
	ID string
	// Read decodes the definition, with its accepted names. The object is the caller's. The
	// error is ErrReplaced if there is a newer definition than that of ID.
	Read func() (*apiextensionsv1.CustomResourceDefinition, error)
}

// ErrReplaced says that a definition was changed or deleted. The registry has replaced its
// Kinds or is about to.
var ErrReplaced = errors.New("the CustomResourceDefinition has been replaced")

// Conversion converts between the stored version and the Kind's own by a conversion webhook.
// A call takes time, may fail and succeed later, and is cheaper for many objects at once. So
// the callers of a Codec convert first, and the Codec has nothing left to convert. Errors of
// a Conversion are answered as they are.
type Conversion struct {
	// Needed reports whether stored JSON is in another version than the Kind's.
	Needed func(json []byte) bool
	// Read converts stored JSON for which Needed holds to JSON in the Kind's version, in the
	// same layout.
	Read func(ctx context.Context, stored [][]byte) ([][]byte, error)
	// Load decodes the result of Read. It adds no defaults, because the stored version's
	// defaults are in it.
	Load func(json []byte) (runtime.Object, error)
	// Write converts an object in hub form to the stored version, for Codec.Encode. It does
	// not change obj.
	Write func(ctx context.Context, obj runtime.Object) (runtime.Object, error)
	// Fields is like Version.Fields, or like Subresource.Fields if a subresource is named,
	// with conversions that end when ctx does.
	Fields func(ctx context.Context, subresource string) *FieldManager
}
