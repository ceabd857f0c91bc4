package kind

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// Conversion is the way between the stored version and the Kind's own where it leads
// through somebody else, a conversion webhook. Such a way takes time, can fail today and
// succeed tomorrow, and is cheaper for many objects at once; so the callers of a Codec go
// it first, and the Codec has nothing left to convert. Its errors are answers as they are.
type Conversion struct {
	// Needed tells whether stored JSON is in another version than the Kind's.
	Needed func(json []byte) bool
	// Read gives JSON in the Kind's version for each stored one, which Needed was true of;
	// it is laid out as stored JSON is.
	Read func(ctx context.Context, stored [][]byte) ([][]byte, error)
	// Load decodes what Read gave. It adds no defaults: they were the stored version's.
	Load func(json []byte) (runtime.Object, error)
	// Write brings an object in hub form to the stored version, for Codec.Store. It leaves
	// obj alone.
	Write func(ctx context.Context, obj runtime.Object) (runtime.Object, error)
	// Fields is Version.Fields, or Subresource.Fields of the subresource if that is not
	// empty, with conversions that end when ctx does.
	Fields func(ctx context.Context, subresource string) *FieldManager
}
