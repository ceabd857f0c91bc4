package custom

import (
	"context"
	"slices"
	"strings"
	"unicode"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apirest "k8s.io/apiserver/pkg/registry/rest"
)

// creation is upstream's strategy for new objects. It runs the same checks in the same order,
// but skips those that the schema has no use for. The embedded strategy has no structural
// schema, so it checks values and metadata only.
type creation struct {
	apirest.RESTCreateStrategy
	schema   *structuralschema.Structural
	embedded bool           // the schema has objects within objects
	keyed    bool           // the schema has lists that are sets or maps
	rules    *cel.Validator // nil: there are none
}

func newCreation(values apirest.RESTCreateStrategy, s *structuralschema.Structural) creation {
	c := creation{RESTCreateStrategy: values, schema: s, rules: cel.NewValidator(s, true, celconfig.PerCallLimit)}
	narrow(c.rules)
	c.embedded = anywhere(s, func(s *structuralschema.Structural) bool { return s.XEmbeddedResource })
	c.keyed = anywhere(s, func(s *structuralschema.Structural) bool { return s.XListType != nil && *s.XListType != "atomic" })
	return c
}

// Validate implements rest.RESTCreateStrategy.
func (c creation) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return c.RESTCreateStrategy.Validate(ctx, obj)
	}
	errs := c.RESTCreateStrategy.Validate(ctx, u)
	if c.embedded {
		errs = append(errs, objectmeta.Validate(ctx, nil, u.Object, c.schema, false)...)
	}
	if c.keyed {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.schema, u.Object)...)
	}
	if c.rules == nil {
		return errs
	}
	if slices.ContainsFunc(errs, keepsRulesFromRunning) {
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	broken, _ := c.rules.Validate(ctx, nil, c.schema, u.Object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// setAsideFields is kind.Hooks.SetAside. It takes out valid managed fields, which upstream's
// strategy would decode three times.
func setAsideFields(obj runtime.Object) (restore func()) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		metadata, _ := u.Object["metadata"].(map[string]any)
		if managed, ok := metadata["managedFields"].([]any); ok && all(managed, isSoundEntry) {
			delete(metadata, "managedFields")
			return func() { u.Object["metadata"].(map[string]any)["managedFields"] = managed }
		}
	}
	return func() {}
}

// isSoundEntry reports that an entry of managedFields is valid.
func isSoundEntry(value any) bool {
	if !isPlainEntry(value) {
		return false
	}
	entry := value.(map[string]any)
	manager, _ := entry["manager"].(string)
	operation := entry["operation"]
	return (operation == "Update" || operation == "Apply") && entry["fieldsType"] == "FieldsV1" && entry["subresource"] == nil &&
		len(manager) <= validation.FieldManagerMaxLength && !strings.ContainsFunc(manager, func(r rune) bool { return !unicode.IsPrint(r) })
}

// keepsRulesFromRunning reports an error after which CEL rules are not evaluated: rules may
// rely on values of the right shape and size.
func keepsRulesFromRunning(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// anywhere reports whether the function is holds for any part of a schema.
func anywhere(s *structuralschema.Structural, is func(*structuralschema.Structural) bool) bool {
	if s == nil {
		return false
	}
	if is(s) || anywhere(s.Items, is) || s.AdditionalProperties != nil && anywhere(s.AdditionalProperties.Structural, is) {
		return true
	}
	for _, property := range s.Properties {
		if anywhere(&property, is) {
			return true
		}
	}
	return false
}
