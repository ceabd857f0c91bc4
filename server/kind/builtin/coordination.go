package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"

	"github.com/plinth-io/plinth/server/kind"
)

func coordinationKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "coordination.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "leases", Singular: "lease", Kind: "Lease",
			Namespaced: true,
			Create:     lease.Strategy, Update: lease.Strategy, Delete: lease.Strategy,
		},
	)
}
