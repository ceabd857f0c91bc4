package admission

import (
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
)

// moved is a write to a resource in a group that it has left (see server.Config's
// ServeRemovedAPIs). Upstream's plugins know the resource only in its new group. Webhooks are
// configured for either group, so they get the original attributes.
type moved struct {
	apiadmission.Attributes
	to schema.GroupVersionResource
}

// GetResource returns the resource in its new group.
func (m *moved) GetResource() schema.GroupVersionResource { return m.to }

// today returns a with the resource in the group in which upstream's plugins know it.
func today(a apiadmission.Attributes, o apiadmission.ObjectInterfaces) apiadmission.Attributes {
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
