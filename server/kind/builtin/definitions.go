package builtin

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirest "k8s.io/apiserver/pkg/registry/rest"
)

// maxSchemaDepths bounds the sum of the depths of all parts of a definition's schemas.
// Upstream's validation builds the whole path of each part, in places once per level: 9,000
// nested arrays keep a processor busy for minutes. Definitions of known projects stay below a
// tenth of the bound.
const maxSchemaDepths = 4_000_000

// maxDefinitionNesting is Kind.MaxNesting of definitions, whose schemas are decoded again at
// each level of arrays. The largest definition, 3 MiB, can be nested 40 deep on average.
const maxDefinitionNesting = 128 << 20

// checkSchemaDepths refuses a definition whose validation would take too long.
func checkSchemaDepths(_ context.Context, obj runtime.Object) error {
	crd, left := obj.(*apiextensions.CustomResourceDefinition), maxSchemaDepths
	path := field.NewPath("spec", "validation")
	if v := crd.Spec.Validation; v != nil && !spendDepths(v.OpenAPIV3Schema, 1, &left) {
		return tooDeep(crd, path)
	}
	for i, v := range crd.Spec.Versions {
		if v.Schema != nil && !spendDepths(v.Schema.OpenAPIV3Schema, 1, &left) {
			return tooDeep(crd, field.NewPath("spec", "versions").Index(i).Child("schema"))
		}
	}
	return nil
}

func tooDeep(crd *apiextensions.CustomResourceDefinition, path *field.Path) error {
	return apierrors.NewInvalid(apiextensions.Kind("CustomResourceDefinition"), crd.Name, field.ErrorList{
		field.Forbidden(path.Child("openAPIV3Schema"), "is nested too deep for its size"),
	})
}

// spendDepths subtracts the depths of all parts of s from left, and is false when nothing is
// left.
func spendDepths(s *apiextensions.JSONSchemaProps, depth int, left *int) bool {
	if s == nil {
		return true
	}
	if *left -= depth; *left < 0 {
		return false
	}
	for _, inner := range innerSchemas(s) {
		if !spendDepths(inner, depth+1, left) {
			return false
		}
	}
	return true
}

func innerSchemas(s *apiextensions.JSONSchemaProps) (inner []*apiextensions.JSONSchemaProps) {
	inner = append(inner, s.Not)
	for _, of := range [][]apiextensions.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range of {
			inner = append(inner, &of[i])
		}
	}
	for _, of := range []map[string]apiextensions.JSONSchemaProps{s.Properties, s.PatternProperties, s.Definitions} {
		for _, p := range of {
			inner = append(inner, &p)
		}
	}
	for _, of := range s.Dependencies {
		inner = append(inner, of.Schema)
	}
	if s.Items != nil {
		inner = append(inner, s.Items.Schema)
		for i := range s.Items.JSONSchemas {
			inner = append(inner, &s.Items.JSONSchemas[i])
		}
	}
	for _, of := range []*apiextensions.JSONSchemaPropsOrBool{s.AdditionalProperties, s.AdditionalItems} {
		if of != nil {
			inner = append(inner, of.Schema)
		}
	}
	return inner
}

// crdDeletion ignores a deletion's propagation policy, as upstream's storage of definitions
// does: instances are always deleted with their definition.
type crdDeletion struct{ apirest.RESTDeleteStrategy }

func (crdDeletion) DefaultGarbageCollectionPolicy(context.Context) apirest.GarbageCollectionPolicy {
	return apirest.Unsupported
}

// holdDefinition keeps a deleted definition until its instances are deleted.
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
