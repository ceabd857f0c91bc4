package crdtest

import (
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type props = apiextensionsv1.JSONSchemaProps

// reflector makes structural schemas of Go types as controller-gen does.
type reflector struct {
	// descriptions is the number of letters that are kept of a description (controller-gen's
	// maxDescLen).
	descriptions int
}

// quantity is the pattern of resource.Quantity.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

var known = map[reflect.Type]props{
	reflect.TypeFor[resource.Quantity]():  {XIntOrString: true, AnyOf: []props{{Type: "integer"}, {Type: "string"}}, Pattern: quantity},
	reflect.TypeFor[intstr.IntOrString](): {XIntOrString: true, AnyOf: []props{{Type: "integer"}, {Type: "string"}}},
	reflect.TypeFor[metav1.Time]():        {Type: "string", Format: "date-time"},
	reflect.TypeFor[metav1.ObjectMeta]():  {Type: "object"},
}

func (r reflector) schema(t reflect.Type) props {
	if p, ok := known[t]; ok {
		return p
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.schema(t.Elem())
	case reflect.Struct:
		return r.object(t)
	case reflect.Map:
		value := r.schema(t.Elem())
		return props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &value}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return props{Type: "string", Format: "byte"}
		}
		item := r.schema(t.Elem())
		return props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
	case reflect.String:
		return props{Type: "string"}
	case reflect.Bool:
		return props{Type: "boolean"}
	case reflect.Int32:
		return props{Type: "integer", Format: "int32"}
	case reflect.Int64, reflect.Int:
		return props{Type: "integer", Format: "int64"}
	}
	panic("no schema for " + t.String())
}

func (r reflector) object(t reflect.Type) props {
	p := props{Type: "object", Properties: map[string]props{}}
	r.fields(t, &p)
	return p
}

type documented interface{ SwaggerDoc() map[string]string }

func (r reflector) fields(t reflect.Type, p *props) {
	docs := map[string]string{}
	if d, ok := reflect.Zero(t).Interface().(documented); ok {
		docs = d.SwaggerDoc()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			r.fields(f.Type, p)
			continue
		}
		field := r.schema(f.Type)
		if doc := docs[name]; r.descriptions > 0 {
			field.Description = doc[:min(len(doc), r.descriptions)]
		}
		if key := f.Tag.Get("patchMergeKey"); key != "" {
			listMap(&field, key)
		}
		p.Properties[name] = field
		if !strings.Contains(options, "omitempty") {
			p.Required = append(p.Required, name)
		}
	}
}

// listMap makes a list a map by a key. The key is required or has a default.
func listMap(list *props, key string) {
	kind := "map"
	list.XListType, list.XListMapKeys = &kind, []string{key}
	item := list.Items.Schema
	for _, name := range item.Required {
		if name == key {
			return
		}
	}
	of := item.Properties[key]
	of.Default = &apiextensionsv1.JSON{Raw: []byte(`""`)}
	item.Properties[key] = of
}
