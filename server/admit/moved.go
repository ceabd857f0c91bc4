package admit

import (
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// moved is a write in a group that has given its resource to another (server.Config's
// ServeRemovedAPIs). Upstream's plugins know only that one; webhooks, which are asked for
// either, are told which it is.
type moved struct {
	admission.Attributes
	to schema.GroupVersionResource
}

// GetResource is where the resource is today.
func (m *moved) GetResource() schema.GroupVersionResource { return m.to }

// today is a, under the name by which upstream's plugins know the resource.
func today(a admission.Attributes, o admission.ObjectInterfaces) admission.Attributes {
	resource := a.GetResource()
	if resource.Group != extensionsv1beta1.GroupName {
		return a
	}
	for _, same := range o.GetEquivalentResourceMapper().EquivalentResourcesFor(resource, "") {
		if same.Group != resource.Group {
			return &moved{a, same}
		}
	}
	return a
}
