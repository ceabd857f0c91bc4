package custom

import (
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// values is upstream's validator of a schema, which makes the validators of all fields anew
// for each object; for new objects this one keeps them. They have no state of their own.
type values struct {
	validation.SchemaValidator
	create *validate.SchemaValidator
	fields sync.Map // of *validate.SchemaValidator by the place of their schema's type in memory
}

func newValues(schema *apiextensions.JSONSchemaProps) (*values, error) {
	upstream, openapi, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return nil, err
	}
	v := &values{SchemaValidator: upstream}
	v.create = validate.NewSchemaValidator(openapi, nil, "", strfmt.Default, v.keepFields)
	return v, nil
}

// keepFields is an option that holds for the fields of one object, not for those within.
func (v *values) keepFields(o *validate.SchemaValidatorOptions) { o.NewValidatorForField = v.field }

// Validate implements validation.SchemaCreateValidator.
func (v *values) Validate(value any, _ ...validation.ValidationOption) *validate.Result {
	return v.create.Validate(value)
}

// field returns the validator of a field: schema is a copy that is gone after the call, but
// its parts are those of the original, of which each has a type of its own. The values of a
// map have one schema at many paths, of which the first has the validator that is kept.
func (v *values) field(_ string, schema *spec.Schema, root any, path string, formats strfmt.Registry, options ...validate.Option) validate.ValueValidator {
	if len(schema.Type) == 0 {
		return validate.NewSchemaValidator(schema, root, path, formats, options...)
	}
	place := &schema.Type[0]
	if known, ok := v.fields.Load(place); ok {
		if known := known.(*validate.SchemaValidator); known.Path == path {
			return known
		}
		return validate.NewSchemaValidator(schema, root, path, formats, options...)
	}
	kept := *schema
	made := validate.NewSchemaValidator(&kept, root, path, formats, append(options, v.keepFields)...)
	v.fields.Store(place, made)
	return made
}
