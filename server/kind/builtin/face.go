package builtin

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"github.com/plinth-io/plinth/server/kind"
)

// face is k in a version that it no longer has: a Kind of its own with the same objects,
// stored as k stores them. Rules, hooks and columns are k's, because they are about hub
// form, which is of one type in all groups that a resource has been in.
func face(k *kind.Kind, r Removed) *kind.Kind {
	scheme := k.Codec.(*codec).scheme
	v := version(scheme, r.GVK)
	v.Deprecated, v.RemovedIn, v.Replacement = r.Warning(), fmt.Sprintf("1.%d", r.Since), r.Now
	f := *k
	f.Group = r.GVK.Group
	f.Versions = []kind.Version{v}
	if f.Group != k.Group { // where kubectl would find the objects a second time
		f.ShortNames, f.Categories = nil, nil
	}
	f.Subresources = make(map[string]*kind.Subresource, len(k.Subresources))
	for name, s := range k.Subresources {
		f.Subresources[name] = subface(k, s, r)
	}
	group{scheme: scheme, name: f.Group}.translate(&f)
	track(&f)
	return &f
}

// subface is a subresource of a face. A Scale was of the same group and version as what is
// scaled.
func subface(k *kind.Kind, s *kind.Subresource, r Removed) *kind.Subresource {
	if s.GVK == autoscalingv1.SchemeGroupVersion.WithKind("Scale") {
		return scaleAs(r.GVK.GroupVersion().WithKind("Scale"), r.Resource.GroupResource(), s.Update, scaledBy[k.GroupResource()])
	}
	same := *s
	same.Fields = nil
	return &same
}
