package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"

	"github.com/plinth-io/plinth/server/kind"
)

func policyKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "policy", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "poddisruptionbudgets", Singular: "poddisruptionbudget", Kind: "PodDisruptionBudget",
			ShortNames: []string{"pdb"},
			Namespaced: true,
			Create:     poddisruptionbudget.Strategy, Update: poddisruptionbudget.Strategy, Delete: poddisruptionbudget.Strategy,
			Subresources: subresources(status(poddisruptionbudget.StatusStrategy)),
		},
	)
}
