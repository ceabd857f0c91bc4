package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"

	"github.com/plinth-io/plinth/server/kind"
)

func schedulingKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "scheduling.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "priorityclasses", Singular: "priorityclass", Kind: "PriorityClass",
			ShortNames: []string{"pc"},
			Create:     priorityclass.Strategy, Update: priorityclass.Strategy, Delete: priorityclass.Strategy,
		},
	)
}
