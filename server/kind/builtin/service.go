package builtin

import (
	"k8s.io/apimachinery/pkg/runtime"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
)

// services lets Services take their addresses and ports, and the defaults that depend on
// them, when they are written.
func (a *attaching) services() error {
	ranges := a.Services
	if ranges == nil {
		defaults, err := allocate.ParseRanges(nil, "")
		if err != nil {
			return err
		}
		ranges = &defaults
	}
	hooks := allocate.NewServices(a.Store, *ranges, a.getter, a.kinds["ipaddresses.networking.k8s.io"], a.kinds["endpoints"])
	services := a.kinds["services"]
	services.BeginCreate = hooks.BeginCreate
	services.BeginUpdate = hooks.BeginUpdate
	services.AfterDelete = hooks.AfterDelete
	services.Codec.(*codec).shown = withoutDefaults
	return nil
}

// withoutDefaults leaves out of what is stored what upstream leaves out of what it shows: the
// default that a Service had for a field that its type has not, before it was of that type.
func withoutDefaults(obj runtime.Object) runtime.Object {
	s, ok := obj.(*api.Service)
	if !ok || s.Spec.Type != api.ServiceTypeExternalName || s.Spec.InternalTrafficPolicy == nil {
		return obj
	}
	shown := *s
	shown.Spec.InternalTrafficPolicy = nil
	return &shown
}
