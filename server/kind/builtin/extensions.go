package builtin

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"

	"github.com/plinth-io/plinth/server/kind"
)

// crdDeletion leaves a deletion's propagation policy aside, as upstream's storage of
// definitions does: the instances go with their definition, whatever a client says.
type crdDeletion struct{ rest.RESTDeleteStrategy }

func (crdDeletion) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.Unsupported
}

// holdDefinition makes a deleted definition wait until its instances are deleted.
func holdDefinition(obj runtime.Object) (held bool) {
	crd := obj.(*apiextensions.CustomResourceDefinition)
	if crd.DeletionTimestamp != nil {
		return false // its finalizers hold it
	}
	if !apiextensions.CRDHasFinalizer(crd, apiextensions.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, apiextensions.CustomResourceCleanupFinalizer)
	}
	apiextensions.SetCRDCondition(crd, apiextensions.CustomResourceDefinitionCondition{
		Type:    apiextensions.Terminating,
		Status:  apiextensions.ConditionTrue,
		Reason:  "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
	return true
}

func extensionsKinds() []*kind.Kind {
	strategy := customresourcedefinition.NewStrategy(crdScheme())
	return group{scheme: crdScheme(), name: "apiextensions.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "customresourcedefinitions", Singular: "customresourcedefinition", Kind: "CustomResourceDefinition",
			UpstreamPrefix: "/registry/apiextensions.k8s.io/customresourcedefinitions/",
			ShortNames:     []string{"crd", "crds"}, Categories: []string{"api-extensions"},
			Create: strategy, Update: strategy, Delete: crdDeletion{strategy},
			BeginDelete:  holdDefinition,
			MaxNesting:   maxDefinitionNesting,
			BeforeCreate: checkSchemaDepths,
			BeforeUpdate: func(ctx context.Context, obj, _ runtime.Object) error { return checkSchemaDepths(ctx, obj) },
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
