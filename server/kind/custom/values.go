package custom

import (
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// values is upstream's validator of a schema. It is called only for values that are not
// certainly valid, because it makes new validators of all fields for each object and most
// objects are valid.
type values struct {
	validation.SchemaValidator
	schema *spec.Schema
	shape  *shape
}

func newValues(schema *apiextensions.JSONSchemaProps) (*values, error) {
	upstream, openapi, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return nil, err
	}
	return &values{SchemaValidator: upstream, schema: openapi, shape: shapeOf(openapi)}, nil
}

// Validate implements validation.SchemaCreateValidator.
func (v *values) Validate(value any, options ...validation.ValidationOption) *validate.Result {
	if v.shape.certain(value) {
		return &validate.Result{}
	}
	result, _ := validateFew(v.schema, value)
	return result
}

// ValidateUpdate implements validation.SchemaValidator.
func (v *values) ValidateUpdate(value, old any, options ...validation.ValidationOption) *validate.Result {
	if v.shape.certain(value) {
		return &validate.Result{}
	}
	result, complete := validateFew(v.schema, value)
	if result.IsValid() {
		return result
	}
	if !complete {
		if before, _ := validateFew(v.schema, old); before.IsValid() {
			return result
		}
	}
	// What is wrong in both may stay (KEP-4008).
	return v.SchemaValidator.ValidateUpdate(value, old, options...)
}
