package custom

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// outline is the part of a schema that decides whether pruning and defaulting would change an
// object. Most objects would not change: they were pruned and defaulted before, or come from
// a client that knows the schema. One walk without an allocation shows that, whereas each of
// upstream's passes copies the schema of every field that it visits.
//
// Rare cases, such as embedded objects, are always left to upstream's passes.
type outline struct {
	properties map[string]*outline
	additional *outline // of fields that are not in properties; nil: none are allowed
	items      *outline
	defaulted  []string // the properties that have a default

	nullable, preserve, embedded bool
}

// anything is the outline of values without a schema: pruning drops all fields of maps there.
var anything = func() *outline {
	o := &outline{}
	o.items = o
	return o
}()

// newOutline is the outline of a whole object, without kind, apiVersion and metadata.
func newOutline(s *structuralschema.Structural) *outline {
	o := outlineOf(s)
	if s == nil {
		return o
	}
	for _, name := range []string{"kind", "apiVersion", "metadata"} {
		delete(o.properties, name)
	}
	return o
}

func outlineOf(s *structuralschema.Structural) *outline {
	if s == nil {
		return anything
	}
	o := &outline{nullable: s.Nullable, preserve: s.XPreserveUnknownFields, embedded: s.XEmbeddedResource, items: outlineOf(s.Items)}
	if len(s.Properties) > 0 {
		o.properties = make(map[string]*outline, len(s.Properties))
	}
	for name, property := range s.Properties {
		o.properties[name] = outlineOf(&property)
		if property.Default.Object != nil {
			o.defaulted = append(o.defaulted, name)
		}
	}
	if s.AdditionalProperties != nil {
		o.additional = outlineOf(s.AdditionalProperties.Structural)
	}
	return o
}

// fits reports that an object has only known fields, no null that is not allowed, and no
// embedded object. It may be false for an object that has.
func (o *outline) fits(object map[string]any) bool {
	for name, value := range object {
		if name == "kind" || name == "apiVersion" || name == "metadata" {
			continue
		}
		if !o.fitsField(name, value) {
			return false
		}
	}
	return true
}

func (o *outline) fitsField(name string, value any) bool {
	if field := o.properties[name]; field != nil {
		return field.fitsValue(value)
	}
	if o.additional != nil {
		return o.additional.fitsValue(value)
	}
	return o.preserve
}

func (o *outline) fitsValue(value any) bool {
	if o.embedded {
		return false
	}
	switch value := value.(type) {
	case nil:
		return o.nullable
	case map[string]any:
		for name, v := range value {
			if !o.fitsField(name, v) {
				return false
			}
		}
	case []any:
		if o.preserve && o.items == anything {
			return true
		}
		for _, v := range value {
			if !o.items.fitsValue(v) {
				return false
			}
		}
	}
	return true
}

// complete reports that no default is missing in a value that fits.
func (o *outline) complete(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range o.defaulted {
			if _, ok := value[name]; !ok {
				return false
			}
		}
		for name, v := range value {
			if !o.completeField(name, v) {
				return false
			}
		}
	case []any:
		for _, v := range value {
			if !o.items.complete(v) {
				return false
			}
		}
	}
	return true
}

func (o *outline) completeField(name string, value any) bool {
	if field := o.properties[name]; field != nil {
		return field.complete(value)
	}
	return o.additional == nil || o.additional.complete(value)
}
