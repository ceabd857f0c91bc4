package kind

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

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
