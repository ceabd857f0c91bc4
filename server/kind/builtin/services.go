package builtin

import (
	"k8s.io/apimachinery/pkg/runtime"
	api "k8s.io/kubernetes/pkg/apis/core"
)

// withoutDefaults leaves out of a stored Service what upstream leaves out of its answers: a
// default of a field that the Service's present type does not have.
func withoutDefaults(obj runtime.Object) runtime.Object {
	s, ok := obj.(*api.Service)
	if !ok || s.Spec.Type != api.ServiceTypeExternalName || s.Spec.InternalTrafficPolicy == nil {
		return obj
	}
	pruned := *s
	pruned.Spec.InternalTrafficPolicy = nil
	return &pruned
}
