package custom

import (
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// shape are the constraints of a schema in a form that is cheap to check for each object. A nil
// shape is of a schema whose values are never certain.
type shape struct {
	types    []string
	nullable bool
	format   string
	enum     []any
	pattern  string

	length, items, fields bounds // of strings, lists and objects
	least, most           *float64
	aboveLeast, belowMost bool // the bounds are exclusive

	allOf, anyOf []*shape
	item, rest   *shape // of items, and of fields without one of their own
	properties   map[string]*shape
	required     []string
}

// bounds are the bounds of a count; nil: none.
type bounds struct{ least, most *int64 }

func (b bounds) hold(n int) bool {
	return (b.least == nil || int64(n) >= *b.least) && (b.most == nil || int64(n) <= *b.most)
}

// unasked is the shape of values without a schema.
var unasked = &shape{nullable: true}

func shapeOf(s *spec.Schema) *shape {
	if s.Not != nil || len(s.OneOf) > 0 || len(s.PatternProperties) > 0 || len(s.Dependencies) > 0 || s.AdditionalItems != nil ||
		s.MultipleOf != nil || s.UniqueItems || s.Ref.String() != "" {
		return nil
	}
	return &shape{
		types: s.Type, nullable: s.Nullable || len(s.Type) == 0 && s.Format == "", format: s.Format, enum: s.Enum, pattern: s.Pattern,
		length: bounds{s.MinLength, s.MaxLength}, items: bounds{s.MinItems, s.MaxItems}, fields: bounds{s.MinProperties, s.MaxProperties},
		least: s.Minimum, most: s.Maximum, aboveLeast: s.ExclusiveMinimum, belowMost: s.ExclusiveMaximum,
		allOf: shapesOf(s.AllOf), anyOf: shapesOf(s.AnyOf), item: itemShape(s.Items), rest: restShape(s.AdditionalProperties),
		properties: propertyShapes(s.Properties), required: s.Required,
	}
}

func shapesOf(schemas []spec.Schema) (shapes []*shape) {
	for i := range schemas {
		shapes = append(shapes, shapeOf(&schemas[i]))
	}
	return shapes
}

func itemShape(s *spec.SchemaOrArray) *shape {
	switch {
	case s == nil:
		return unasked
	case s.Schema == nil || len(s.Schemas) > 0:
		return nil
	}
	return shapeOf(s.Schema)
}

func restShape(s *spec.SchemaOrBool) *shape {
	switch {
	case s == nil:
		return unasked
	case !s.Allows:
		return nil
	case s.Schema == nil:
		return unasked
	}
	return shapeOf(s.Schema)
}

func propertyShapes(schemas map[string]spec.Schema) map[string]*shape {
	shapes := make(map[string]*shape, len(schemas))
	for name, s := range schemas {
		shapes[name] = shapeOf(&s)
	}
	return shapes
}
