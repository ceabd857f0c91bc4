package custom

import (
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plinth-io/plinth/sqlstore/object"
)

// plainPath is a path of names that need no quotes.
var plainPath = regexp.MustCompile(`^(\.[A-Za-z_][A-Za-z0-9_-]*)+$`)

// attributes are those of a version's selectable fields, see kind.Kind.Attributes.
func attributes(v *apiextensionsv1.CustomResourceDefinitionVersion) map[string]string {
	all := make(map[string]string, len(v.SelectableFields))
	for _, f := range v.SelectableFields {
		if !plainPath.MatchString(f.JSONPath) {
			continue
		}
		name := strings.TrimPrefix(f.JSONPath, ".")
		path := strings.Split(name, ".")
		if v.Schema == nil || hasDefault(v.Schema.OpenAPIV3Schema, path) {
			all[name] = object.Field(path...)
		} else {
			all[name] = object.FieldOr("", path...)
		}
	}
	return all
}

// hasDefault tells whether decoding may fill in the field at a path.
func hasDefault(s *apiextensionsv1.JSONSchemaProps, path []string) bool {
	if s == nil || s.Default != nil {
		return true
	}
	if len(path) == 0 {
		return false
	}
	inner, known := s.Properties[path[0]]
	return !known || hasDefault(&inner, path[1:])
}
