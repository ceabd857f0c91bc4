package custom

import (
	"math"
	"slices"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// certain reports that a value of decoded JSON is valid by the schema, as upstream's validator
// understands it (k8s.io/kube-openapi/pkg/validation/validate). It may be false for a valid
// value: then upstream's validator decides.
func (s *shape) certain(value any) bool {
	if s == unasked {
		return true
	}
	if s == nil || !s.certainParts(value) {
		return false
	}
	switch value := value.(type) {
	case nil:
		return s.nullable && len(s.enum) == 0
	case string:
		return s.certainString(value)
	case bool:
		return s.plain("boolean")
	case int64:
		return s.certainInteger(value)
	case float64:
		return s.plain("number") && s.least == nil && s.most == nil
	case []any:
		return s.certainList(value)
	case map[string]any:
		return s.certainObject(value)
	}
	return false
}

func (s *shape) certainParts(value any) bool {
	for _, part := range s.allOf {
		if !part.certain(value) {
			return false
		}
	}
	return len(s.anyOf) == 0 || slices.ContainsFunc(s.anyOf, func(part *shape) bool { return part.certain(value) })
}

func (s *shape) is(name string) bool { return len(s.types) == 0 || slices.Contains(s.types, name) }

// plain reports that a schema constrains only the type of values.
func (s *shape) plain(name string) bool { return s.is(name) && s.format == "" && len(s.enum) == 0 }

func (s *shape) certainString(value string) bool {
	switch {
	case !s.is("string"), s.format != "" && len(s.types) != 1,
		len(s.enum) > 0 && !slices.Contains(s.enum, any(value)),
		s.pattern != "" && validate.Pattern("", "", value, s.pattern) != nil,
		s.format != "" && strfmt.Default.ContainsName(s.format) && !strfmt.Default.Validates(s.format, value):
		return false
	}
	return s.length == bounds{} || s.length.hold(utf8.RuneCountInString(value))
}

func (s *shape) certainInteger(n int64) bool {
	if len(s.enum) > 0 || len(s.types) > 0 && s.types[0] != "integer" {
		return false
	}
	switch {
	case s.format == "", s.format == "int64":
	case s.format == "int32" && n >= math.MinInt32 && n <= math.MaxInt32:
	default:
		return false
	}
	if s.least == nil && s.most == nil {
		return len(s.types) > 0 || s.format == ""
	}
	return len(s.types) > 0 && above(float64(n), s.least, 1, s.aboveLeast) && above(-float64(n), s.most, -1, s.belowMost)
}

// above reports that n is within a bound, both multiplied by sign. It is false for bounds that
// are no integers of 32 bits, which upstream may round.
func above(n float64, bound *float64, sign float64, exclusive bool) bool {
	switch {
	case bound == nil:
		return true
	case *bound != math.Trunc(*bound) || math.Abs(*bound) > math.MaxInt32:
		return false
	case exclusive:
		return n > sign**bound
	}
	return n >= sign**bound
}

func (s *shape) certainList(list []any) bool {
	if !s.plain("array") || !s.items.hold(len(list)) {
		return false
	}
	for _, item := range list {
		if !s.item.certain(item) {
			return false
		}
	}
	return true
}

func (s *shape) certainObject(object map[string]any) bool {
	if !s.plain("object") || !s.fields.hold(len(object)) {
		return false
	}
	for _, name := range s.required {
		if _, ok := object[name]; !ok {
			return false
		}
	}
	for name, value := range object {
		property, known := s.properties[name]
		if !known {
			property = s.rest
		}
		if !property.certain(value) {
			return false
		}
	}
	return true
}
