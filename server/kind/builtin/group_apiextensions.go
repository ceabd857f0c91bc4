package builtin

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/tableconvertor"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/server/kind"
)

func apiextensionsKinds() []*kind.Kind {
	strategy := customresourcedefinition.NewStrategy(crdScheme())
	return group{scheme: crdScheme(), name: "apiextensions.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "customresourcedefinitions", Singular: "customresourcedefinition", Kind: "CustomResourceDefinition",
			UpstreamPath: "apiextensions.k8s.io/customresourcedefinitions",
			ShortNames:   []string{"crd", "crds"}, Categories: []string{"api-extensions"},
			Create: strategy, Update: strategy, Delete: crdDeletion{strategy},
			MaxNesting: maxDefinitionNesting,
			Hooks: kind.Hooks{
				CompleteNew:     checkSchemaDepths,
				CompleteChanged: func(ctx context.Context, obj, _ runtime.Object) error { return checkSchemaDepths(ctx, obj) },
				MarkTerminating: holdDefinition,
			},
			Attrs:        customresourcedefinition.GetAttrs,
			Table:        tableconvertor.New(),
			Subresources: subresources(untabled(status(customresourcedefinition.NewStatusStrategy(crdScheme())))),
		},
	)
}
