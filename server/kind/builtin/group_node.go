package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"

	"github.com/plinth-io/plinth/server/kind"
)

func nodeKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "node.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "runtimeclasses", Singular: "runtimeclass", Kind: "RuntimeClass",
			Create: runtimeclass.Strategy, Update: runtimeclass.Strategy, Delete: runtimeclass.Strategy,
		},
	)
}
