package kind

import (
	"bytes"
	"fmt"

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
