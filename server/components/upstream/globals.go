//go:build cluster

package upstream

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/component-base/compatibility"

	"github.com/plinth-io/plinth/server/kind"
)

// ownGlobals is a registry for the options of a component that knows the release which the process emulates, and changes
// nothing in it: upstream's own registry would, and its flags close the feature gates.
func ownGlobals() compatibility.ComponentGlobalsRegistry {
	registry := compatibility.NewComponentGlobalsRegistry()
	effective := kind.Effective().(compatibility.MutableEffectiveVersion)
	if err := registry.Register(compatibility.DefaultKubeComponent, effective, nil); err != nil {
		panic(err) // the registry is empty
	}
	if err := registry.Set(); err != nil {
		panic(err) // nothing was said
	}
	return registry
}

// withoutManagedFields is how informers keep objects: nobody reads managedFields there.
func withoutManagedFields(object any) (any, error) {
	if o, err := meta.Accessor(object); err == nil && o.GetManagedFields() != nil {
		o.SetManagedFields(nil)
	}
	return object, nil
}
