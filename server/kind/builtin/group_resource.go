package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourcepoolstatusrequest"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"

	"github.com/plinth-io/plinth/server/kind"
)

// resourceKinds are the resources of dynamic resource allocation.
func resourceKinds(o Options) []*kind.Kind {
	claim := resourceclaim.NewStrategy(namespaces{store: o.Store}, o.Authorizer)
	template := resourceclaimtemplate.NewStrategy(namespaces{store: o.Store})
	return group{scheme: legacyscheme.Scheme, name: "resource.k8s.io", versions: []string{"v1", "v1beta2", "v1beta1", "v1alpha3"}}.kinds(
		&kind.Kind{
			Resource: "deviceclasses", Singular: "deviceclass", Kind: "DeviceClass",
			Create: deviceclass.Strategy, Update: deviceclass.Strategy, Delete: deviceclass.Strategy,
			ReturnDeleted: true,
		},
		&kind.Kind{
			Resource: "devicetaintrules", Singular: "devicetaintrule", Kind: "DeviceTaintRule",
			Create: devicetaintrule.Strategy, Update: devicetaintrule.Strategy, Delete: devicetaintrule.Strategy,
			ReturnDeleted:   true,
			ReturnStatusFor: []string{"v1"},
			Subresources:    subresources(untabled(status(devicetaintrule.StatusStrategy))),
		},
		&kind.Kind{
			Resource: "resourceclaims", Singular: "resourceclaim", Kind: "ResourceClaim",
			Namespaced: true,
			Create:     claim, Update: claim, Delete: claim,
			Attrs:         resourceclaim.GetAttrs,
			ReturnDeleted: true,
			Subresources:  subresources(untabled(status(resourceclaim.NewStatusStrategy(claim)))),
		},
		&kind.Kind{
			Resource: "resourceclaimtemplates", Singular: "resourceclaimtemplate", Kind: "ResourceClaimTemplate",
			Namespaced: true,
			Create:     template, Update: template, Delete: template,
			Attrs:         resourceclaimtemplate.GetAttrs,
			ReturnDeleted: true,
		},
		&kind.Kind{
			Resource: "resourcepoolstatusrequests", Singular: "resourcepoolstatusrequest", Kind: "ResourcePoolStatusRequest",
			Create: resourcepoolstatusrequest.Strategy, Update: resourcepoolstatusrequest.Strategy, Delete: resourcepoolstatusrequest.Strategy,
			ReturnDeleted: true,
			Subresources:  subresources(untabled(status(resourcepoolstatusrequest.StatusStrategy))),
		},
		&kind.Kind{
			Resource: "resourceslices", Singular: "resourceslice", Kind: "ResourceSlice",
			Create: resourceslice.Strategy, Update: resourceslice.Strategy, Delete: resourceslice.Strategy,
			Attrs: resourceslice.GetAttrs,
			Attributes: attributes{
				"spec.nodeName":  absentIs("", "spec.nodeName"),
				"spec.driver":    absentIs("", "spec.driver"),
				"spec.pool.name": absentIs("", "spec.pool.name"),
			},
			ReturnDeleted: true,
		},
	)
}
