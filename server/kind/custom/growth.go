package custom

import (
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Defaults are filled in for every item of a list or a map, so a short object can grow a
// thousandfold: 60 KiB of empty items may become more than fits in memory. The growth is
// therefore counted before defaults are filled in.

// maxGrowth bounds what defaults may add to one object, in bytes of JSON. Objects above 3 MiB
// are refused later in any case.
const maxGrowth = 8 << 20

var errGrowth = apierrors.NewRequestEntityTooLargeError(
	fmt.Sprintf("The defaults of the schema make the object longer than %d bytes", maxGrowth))

// growing reports whether a schema has defaults within items of lists or maps. All other
// defaults together are no longer than the definition itself.
func growing(s *structuralschema.Structural, within bool) bool {
	if s == nil {
		return false
	}
	if within && s.Default.Object != nil || growing(s.Items, true) {
		return true
	}
	if s.AdditionalProperties != nil && growing(s.AdditionalProperties.Structural, true) {
		return true
	}
	for _, p := range s.Properties {
		if growing(&p, within) {
			return true
		}
	}
	return false
}

// growth counts down the bytes that may still be added.
type growth struct{ left int }

// spend counts the defaults that are missing in x, and is false when nothing is left. It walks
// the value as upstream's defaulting does.
func (g *growth) spend(x any, s *structuralschema.Structural) bool {
	if s == nil {
		return true
	}
	switch x := x.(type) {
	case map[string]any:
		return g.spendFields(x, s)
	case []any:
		for i := range x {
			if !g.spendItem(x[i], s.Items) {
				return false
			}
		}
	}
	return true
}

func (g *growth) spendFields(x map[string]any, s *structuralschema.Structural) bool {
	for name, p := range s.Properties {
		v, there := x[name]
		if p.Default.Object != nil && (!there || v == nil && !p.Nullable) {
			if !g.take(len(name)) || !g.spendDefault(&p) {
				return false
			}
		} else if there && !g.spend(v, &p) {
			return false
		}
	}
	if s.AdditionalProperties == nil {
		return true
	}
	for name, v := range x {
		if _, known := s.Properties[name]; !known && !g.spendItem(v, s.AdditionalProperties.Structural) {
			return false
		}
	}
	return true
}

// spendItem does what spend does for an item. A null that is not allowed is replaced by the
// default.
func (g *growth) spendItem(v any, s *structuralschema.Structural) bool {
	if v == nil && s != nil && !s.Nullable && s.Default.Object != nil {
		return g.spendDefault(s)
	}
	return g.spend(v, s)
}

func (g *growth) spendDefault(s *structuralschema.Structural) bool {
	return g.size(s.Default.Object) && g.spend(s.Default.Object, s)
}

// size counts about the length of a value as JSON.
func (g *growth) size(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			if !g.take(len(name)) || !g.size(field) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !g.size(item) {
				return false
			}
		}
	case string:
		return g.take(len(v))
	}
	return g.take(1)
}

// take counts the bytes of a name or a value, with punctuation.
func (g *growth) take(n int) bool {
	g.left -= n + 3
	return g.left >= 0
}
