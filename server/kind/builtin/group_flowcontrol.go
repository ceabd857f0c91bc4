package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"

	"github.com/plinth-io/plinth/server/kind"
)

func flowcontrolKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "flowcontrol.apiserver.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "flowschemas", Singular: "flowschema", Kind: "FlowSchema",
			Create: flowschema.Strategy, Update: flowschema.Strategy, Delete: flowschema.Strategy,
			Subresources: subresources(status(flowschema.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "prioritylevelconfigurations", Singular: "prioritylevelconfiguration", Kind: "PriorityLevelConfiguration",
			Create: prioritylevelconfiguration.Strategy, Update: prioritylevelconfiguration.Strategy, Delete: prioritylevelconfiguration.Strategy,
			Subresources: subresources(status(prioritylevelconfiguration.StatusStrategy)),
		},
	)
}
