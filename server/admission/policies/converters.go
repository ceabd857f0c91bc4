package policies

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"

	"github.com/plinth-io/plinth/server/kind"
)

// typeConverters are those that server-side apply works with. Where upstream polls the OpenAPI
// documents, these are never out of date.
type typeConverters struct{ kinds *kind.Registry }

var _ patch.TypeConverterManager = &typeConverters{}

// Run has nothing to do.
func (c *typeConverters) Run(context.Context) {}

// GetTypeConverter returns the converter of a kind of object or of a subresource's body; nil
// if its group and version are not served. Upstream's converters know all kinds of a version,
// so a kind without one of its own gets that of another.
func (c *typeConverters) GetTypeConverter(gvk schema.GroupVersionKind) (found managedfields.TypeConverter) {
	for _, k := range c.kinds.Set().Kinds {
		for _, v := range k.Versions {
			if v.Fields != nil && k.Group == gvk.Group && v.Name == gvk.Version {
				if k.Kind == gvk.Kind {
					return v.Fields.Types
				}
				found = v.Fields.Types
			}
			for _, sub := range k.Subresources {
				if fields := sub.Fields[v.Name]; fields != nil && sub.GVK == gvk {
					return fields.Types
				}
			}
		}
	}
	return found
}
