package custom

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// outline is what of a schema decides whether an object would be changed by pruning and
// defaulting. Most objects would not: they have been through it, or come from a client
// that knows the schema. To see that takes one walk without an allocation, whereas each of
// upstream's passes copies the schema of every field that it comes by.
//
// It is never sure of what is rare, such as embedded objects; then the passes are made.
type outline struct {
	properties map[string]*outline
	additional *outline // of fields that properties has not; nil: there are none
	items      *outline
	defaulted  []string // the properties that have a default

	nullable, preserve, embedded bool
}

// anything is of values that have no schema: maps in there lose all their fields.
var anything = func() *outline {
	o := &outline{}
	o.items = o
	return o
}()

// newOutline is of the whole object; its kind, apiVersion and metadata are not part of it.
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

// settles tells that an object has only what its schema knows, no null where none may be,
// and no object within; wrong is only that it may say no where it could say yes.
func (o *outline) settles(object map[string]any) bool {
	for name, value := range object {
		if name == "kind" || name == "apiVersion" || name == "metadata" {
			continue
		}
		if !o.settlesField(name, value) {
			return false
		}
	}
	return true
}

func (o *outline) settlesField(name string, value any) bool {
	if field := o.properties[name]; field != nil {
		return field.settlesValue(value)
	}
	if o.additional != nil {
		return o.additional.settlesValue(value)
	}
	return o.preserve
}

func (o *outline) settlesValue(value any) bool {
	if o.embedded {
		return false
	}
	switch value := value.(type) {
	case nil:
		return o.nullable
	case map[string]any:
		for name, v := range value {
			if !o.settlesField(name, v) {
				return false
			}
		}
	case []any:
		if o.preserve && o.items == anything {
			return true
		}
		for _, v := range value {
			if !o.items.settlesValue(v) {
				return false
			}
		}
	}
	return true
}

// complete tells that no default is missing in a value that is settled.
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
