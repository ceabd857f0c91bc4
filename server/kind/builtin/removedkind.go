package builtin

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/apis/apps"

	"github.com/plinth-io/plinth/server/kind"
)

// removedSubresources are the subresources that a resource had in removed versions only.
var removedSubresources = map[schema.GroupResource]func(*stores, Removed) *kind.Subresource{
	apps.Resource("deployments"): (*stores).rollback,
}

// removedKinds are the Kinds of the removed versions that Options ask for. today are the
// Kinds of the same objects.
func (s *stores) removedKinds(today map[schema.GroupResource]*kind.Kind) []*kind.Kind {
	var all []*kind.Kind
	for _, r := range s.Removed {
		all = append(all, s.removedKind(today[r.today], r))
	}
	return all
}

// removedKind is a Kind for the objects of k in a removed version. It has k's storage,
// strategies, hooks and columns, because these work on hub form, which has one type in all
// groups that a resource has been in.
func (s *stores) removedKind(k *kind.Kind, r Removed) *kind.Kind {
	scheme := k.Codec.(*codec).scheme
	v := version(scheme, r.GVK)
	v.Deprecated, v.RemovedIn, v.Replacement, v.Declared = r.Warning(), fmt.Sprintf("1.%d", r.Since), r.Now, r.Now.GroupVersion()
	old := *k
	old.Group = r.GVK.Group
	old.Versions = []kind.Version{v}
	if old.Group != k.Group { // else kubectl would list the objects twice
		old.ShortNames, old.Categories = nil, nil
	}
	old.Subresources = make(map[string]*kind.Subresource, len(k.Subresources))
	for name, sub := range k.Subresources {
		old.Subresources[name] = removedSubresource(k, sub, r)
	}
	group{scheme: scheme, name: old.Group}.translate(&old)
	addFieldManagers(&old)
	if more := removedSubresources[r.today]; more != nil {
		if sub := more(s, r); sub != nil {
			old.Subresources[sub.Name] = sub
		}
	}
	return &old
}

// removedSubresource is a subresource of k in a removed version. A Scale was of the same
// group and version as the scaled object.
func removedSubresource(k *kind.Kind, sub *kind.Subresource, r Removed) *kind.Subresource {
	if sub.GVK == autoscalingv1.SchemeGroupVersion.WithKind("Scale") {
		return scaleAs(r.GVK.GroupVersion().WithKind("Scale"), r.Resource.GroupResource(), sub.Update, scaledBy[k.GroupResource()])
	}
	same := *sub
	same.Fields = nil
	return &same
}
