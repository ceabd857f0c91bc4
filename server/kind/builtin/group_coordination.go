package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/coordination/leasecandidate"

	"github.com/plinth-io/plinth/server/kind"
)

func coordinationKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "coordination.k8s.io", versions: []string{"v1", "v1beta1", "v1alpha2"}}.kinds(
		&kind.Kind{
			Resource: "leasecandidates", Singular: "leasecandidate", Kind: "LeaseCandidate",
			Namespaced: true,
			Create:     leasecandidate.Strategy, Update: leasecandidate.Strategy, Delete: leasecandidate.Strategy,
			Attrs:      leasecandidate.GetAttrs,
			Attributes: attributes{"spec.leaseName": absentIs("", "spec.leaseName")},
		},
		&kind.Kind{
			Resource: "leases", Singular: "lease", Kind: "Lease",
			Namespaced: true,
			Create:     lease.Strategy, Update: lease.Strategy, Delete: lease.Strategy,
			Hooks: kind.Hooks{MayWait: renewalMayWait},
		},
	)
}
