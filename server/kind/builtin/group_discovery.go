package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"

	"github.com/plinth-io/plinth/server/kind"
)

func discoveryKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "discovery.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "endpointslices", Singular: "endpointslice", Kind: "EndpointSlice",
			Namespaced: true,
			Create:     endpointslice.Strategy, Update: endpointslice.Strategy, Delete: endpointslice.Strategy,
		},
	)
}
