package rest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/server/kind"
)

// Admission plugins create, default and convert objects of the request's resource, and find other resources that serve
// the same objects.
var _ apiadmission.ObjectInterfaces = admitter{}

func (a admitter) GetObjectCreater() runtime.ObjectCreater     { return a.objects().Creater }
func (a admitter) GetObjectTyper() runtime.ObjectTyper         { return a.objects().Typer }
func (a admitter) GetObjectDefaulter() runtime.ObjectDefaulter { return a.objects().Defaulter }
func (a admitter) GetObjectConvertor() runtime.ObjectConvertor { return a.objects().Convertor }

func (a admitter) objects() kind.Objects { return a.q.codec().Objects(a.q.ctx) }

func (a admitter) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return equivalents{a.q.api.kinds.Set()}
}

// equivalents knows the groups and versions under which the same objects are served.
type equivalents struct{ kinds *kind.Set }

// EquivalentResourcesFor returns all groups and versions of a resource that have the subresource.
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

// KindFor returns the kind of the bodies of a resource or subresource.
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
