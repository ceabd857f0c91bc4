package builtin

import (
	"k8s.io/kube-aggregator/pkg/registry/apiservice"

	"github.com/plinth-io/plinth/server/kind"
)

func apiregistrationKinds() []*kind.Kind {
	strategy := apiservice.NewStrategy(apiServiceScheme())
	return group{scheme: apiServiceScheme(), name: "apiregistration.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "apiservices", Singular: "apiservice", Kind: "APIService",
			UpstreamPath: "apiregistration.k8s.io/apiservices",
			Categories:   []string{"api-extensions"},
			Create:       strategy, Update: strategy, Delete: strategy,
			Attrs:        apiservice.GetAttrs,
			Table:        apiServiceColumns{},
			Subresources: subresources(untabled(status(apiservice.NewStatusStrategy(apiServiceScheme())))),
		},
	)
}
