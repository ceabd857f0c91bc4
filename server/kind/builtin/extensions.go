package builtin

import (
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"

	"github.com/plinth-io/plinth/server/kind"
)

func extensionsKinds() []*kind.Kind {
	strategy := customresourcedefinition.NewStrategy(crdScheme())
	return group{scheme: crdScheme(), name: "apiextensions.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "customresourcedefinitions", Singular: "customresourcedefinition", Kind: "CustomResourceDefinition",
			UpstreamPrefix: "/registry/apiextensions.k8s.io/customresourcedefinitions/",
			ShortNames:     []string{"crd", "crds"}, Categories: []string{"api-extensions"},
			Create: strategy, Update: strategy, Delete: strategy,
			Attrs:        customresourcedefinition.GetAttrs,
			Table:        nameAndCreated("apiextensions.k8s.io", "customresourcedefinitions"),
			Subresources: subresources(untabled(status(customresourcedefinition.NewStatusStrategy(crdScheme())))),
		},
	)
}

func registrationKinds() []*kind.Kind {
	strategy := apiservice.NewStrategy(apiServiceScheme())
	return group{scheme: apiServiceScheme(), name: "apiregistration.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "apiservices", Singular: "apiservice", Kind: "APIService",
			UpstreamPrefix: "/registry/apiregistration.k8s.io/apiservices/",
			Categories:     []string{"api-extensions"},
			Create:         strategy, Update: strategy, Delete: strategy,
			Attrs:        apiservice.GetAttrs,
			Table:        apiServiceColumns{},
			Subresources: subresources(untabled(status(apiservice.NewStatusStrategy(apiServiceScheme())))),
		},
	)
}
