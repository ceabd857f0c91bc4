package custom

import (
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

const (
	// mostErrors is how many errors of one object are looked for; more are in no answer. Upstream's validator compares
	// each error with all others: a body of 3 MiB can have a million, which would take a processor hours.
	mostErrors = 1000
	// fewValues is how many values an object may have that is validated without counting its errors.
	fewValues = 2000
)

// errorCount stops the validation of one value at many errors.
type errorCount struct{ found int }

// tooMany returns the first errors of a value if there are too many, else nil: then upstream's validator can say what
// is wrong in reasonable time.
func tooMany(schema *spec.Schema, value any) *validate.Result {
	if left := fewValues; !hasMore(value, &left) {
		return nil
	}
	c := &errorCount{}
	found := c.validator(schema, nil, "", strfmt.Default).Validate(value)
	if c.found <= mostErrors {
		return nil
	}
	return found
}

// hasMore tells whether a value has more values within than left.
func hasMore(value any, left *int) bool {
	if *left--; *left < 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			if hasMore(v, left) {
				return true
			}
		}
	case []any:
		for _, v := range value {
			if hasMore(v, left) {
				return true
			}
		}
	}
	return false
}

// counted is upstream's validator of a field or an item. It finds nothing more once there are many errors.
type counted struct {
	*validate.SchemaValidator
	count *errorCount
}

// Validate implements validate.ValueValidator.
func (v counted) Validate(value any) *validate.Result {
	if v.count.found > mostErrors {
		return &validate.Result{}
	}
	before := v.count.found
	result := v.SchemaValidator.Validate(value)
	within := v.count.found - before // of fields and items, which result has as well
	v.count.found += max(0, len(result.Errors)-within)
	return result
}

func (c *errorCount) validator(schema *spec.Schema, root any, path string, formats strfmt.Registry) validate.ValueValidator {
	return counted{validate.NewSchemaValidator(schema, root, path, formats, c.use), c}
}

// use has the fields and items of a value validated in the same way.
func (c *errorCount) use(o *validate.SchemaValidatorOptions) {
	o.NewValidatorForField = func(_ string, schema *spec.Schema, root any, path string, formats strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
		return c.validator(schema, root, path, formats)
	}
	o.NewValidatorForIndex = func(_ int, schema *spec.Schema, root any, path string, formats strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
		return c.validator(schema, root, path, formats)
	}
}
