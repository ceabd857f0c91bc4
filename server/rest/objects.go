package rest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/server/kind"
)

// objects is how admission gets at objects in a version that a plugin wants to see, of the
// request's resource or of another that has the same objects.
type objects struct{ q *request }

var _ admission.ObjectInterfaces = objects{}

func (o objects) GetObjectCreater() runtime.ObjectCreater     { return o.of().Creater }
func (o objects) GetObjectTyper() runtime.ObjectTyper         { return o.of().Typer }
func (o objects) GetObjectDefaulter() runtime.ObjectDefaulter { return o.of().Defaulter }
func (o objects) GetObjectConvertor() runtime.ObjectConvertor { return o.of().Convertor }

func (o objects) of() kind.Objects { return o.q.codec().Objects(o.q.r.Context()) }

func (o objects) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return equivalents{o.q.api.kinds.Set()}
}

// equivalents knows under which names there are the same objects.
type equivalents struct{ kinds *kind.Set }

// EquivalentResourcesFor returns the other versions of a resource, and the other groups
// that it is in, as far as they have the subresource.
func (e equivalents) EquivalentResourcesFor(resource schema.GroupVersionResource, subresource string) (all []schema.GroupVersionResource) {
	k := e.kinds.Lookup(resource.Group, resource.Version, resource.Resource)
	if k == nil {
		return nil
	}
	for _, same := range e.kinds.SameObjects(k) {
		if subresource != "" && same.Subresources[subresource] == nil {
			continue
		}
		for _, v := range same.Versions {
			all = append(all, same.GroupResource().WithVersion(v.Name))
		}
	}
	return all
}

// KindFor returns the kind of a resource's, or subresource's, bodies.
func (e equivalents) KindFor(resource schema.GroupVersionResource, subresource string) schema.GroupVersionKind {
	k := e.kinds.Lookup(resource.Group, resource.Version, resource.Resource)
	if k == nil {
		return schema.GroupVersionKind{}
	}
	if sub := k.Subresources[subresource]; sub != nil && !sub.GVK.Empty() {
		return sub.GVK
	}
	return k.GVK(resource.Version)
}
