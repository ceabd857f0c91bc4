package custom

import (
	"errors"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/plinth-io/plinth/server/kind"
)

// mostPathBytes bounds the paths of all values together. Upstream makes the path of each value, so a long name of a
// field above many values would take it minutes, and the memory.
const mostPathBytes = 256 << 20

// errPaths is why an object is refused whose paths are too long.
var errPaths = errors.New("names of fields are too long for the number of values below them")

// errorCount stops the validation of one value at many errors: upstream's validator compares each with all others,
// and a body of 3 MiB can have a million, which would take a processor hours.
type errorCount struct{ found, bytes int }

func (c *errorCount) full() bool { return c.found > kind.MostErrors || c.bytes > kind.MostErrorBytes }

// validateFew is upstream's validation of a value, up to many errors. complete is false if there are more.
func validateFew(schema *spec.Schema, value any) (result *validate.Result, complete bool) {
	if left := mostPathBytes; pathsExceed(value, 0, &left) {
		return &validate.Result{Errors: []error{errPaths}}, false
	}
	c := &errorCount{}
	result = c.validator(schema, nil, "", strfmt.Default).Validate(value)
	return result, !c.full()
}

// pathsExceed tells whether the paths of a value and of all within take more than left bytes. above is the length of
// the value's own.
func pathsExceed(value any, above int, left *int) bool {
	if *left -= above; *left < 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			if pathsExceed(v, above+1+len(name), left) {
				return true
			}
		}
	case []any:
		for _, v := range value {
			if pathsExceed(v, above+8, left) {
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
	if v.count.full() {
		return &validate.Result{}
	}
	before := v.count.found
	result := v.SchemaValidator.Validate(value)
	within := v.count.found - before // of fields and items, which result has as well
	if own := len(result.Errors) - within; own > 0 {
		v.count.found += own
		for _, err := range result.Errors {
			v.count.bytes += len(err.Error())
		}
	}
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
