package builtin

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/lifecycle/eviction"
	"k8s.io/kubernetes/pkg/registry/lifecycle/evictionrequest"
	"k8s.io/utils/clock"

	"github.com/plinth-io/plinth/server/kind"
)

func lifecycleKinds() []*kind.Kind {
	if !utilfeature.DefaultFeatureGate.Enabled(features.EvictionRequestAPI) {
		return nil
	}
	evictions := eviction.NewStrategy(clock.RealClock{})
	requests := evictionrequest.NewStrategy()
	return group{scheme: legacyscheme.Scheme, name: "lifecycle.k8s.io", versions: []string{"v1alpha1"}}.kinds(
		&kind.Kind{
			Resource: "evictions", Singular: "eviction", Kind: "Eviction",
			Namespaced: true,
			Create:     evictions, Update: evictions, Delete: evictions,
			Subresources: subresources(status(eviction.NewStatusStrategy(evictions))),
		},
		&kind.Kind{
			Resource: "evictionrequests", Singular: "evictionrequest", Kind: "EvictionRequest",
			Namespaced: true,
			Create:     requests, Update: requests, Delete: requests,
			Subresources: subresources(status(evictionrequest.NewStatusStrategy(requests))),
		},
	)
}
