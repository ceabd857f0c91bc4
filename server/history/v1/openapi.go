package v1

import (
	"reflect"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// help has the descriptions of fields.
var help = map[string]string{
	"kind":       "The kind of this object.",
	"apiVersion": "The version of the schema of this object.",
	"metadata":   "The name and the resourceVersion are the revision; the namespace is that of the object that was changed.",
	"items":      "The newest first; of a state, in the order of the objects' keys.",

	"revision":     "The resourceVersion that the object got with the change.",
	"time":         "When the change was committed, to the millisecond.",
	"action":       "What became of the object: created, changed or deleted.",
	"user":         "As whom the request ran. Empty for changes from before that was noted.",
	"impersonator": "Who asked for the change, if that was somebody else than user.",
	"verb":         "The verb of the request.",
	"subresource":  "The subresource that was written, if any.",
	"manager":      "The field manager.",
	"auditID":      "The id of the request in the audit log.",
	"object":       "The object that was changed.",
	"data":         "The object after the change, in the version in which it is stored; of a deleted object the last that was there.",
	"unreadable":   "Why there is no data: it cannot be decrypted.",
	"touched":      "The fields that differ from the version before, items of lists by their merge keys. Only of a change of an object whose version before is kept; in lists and watches only with the field selector with=touched.",
	"moreTouched":  "How many more fields differ.",

	"resource":       "The resource with its group, such as deployments.apps.",
	"namespace":      "The namespace of the object; empty for an object of the cluster.",
	"name":           "The name of the object.",
	"createRevision": "The revision that created the object. Objects of one name that were there one after the other have different ones.",
}

// OpenAPIDefinitions describes the types of the group.
func OpenAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := map[string]common.OpenAPIDefinition{}
	for what, obj := range map[string]util.OpenAPIModelNamer{
		"A change of an object: who made it, when and how.":           Change{},
		"Changes, the newest first.":                                  ChangeList{},
		"A change of an object with what the object was after it.":    Version{},
		"Versions of objects.":                                        VersionList{},
		"The object that a change is about, by its resource and name": ObjectReference{},
	} {
		t := reflect.TypeOf(obj)
		d := &described{ref: ref}
		d.Type = []string{"object"}
		d.Description = what
		d.Properties = map[string]spec.Schema{}
		d.add(t)
		all[obj.OpenAPIModelName()] = common.OpenAPIDefinition{
			Schema: spec.Schema{SchemaProps: d.SchemaProps}, Dependencies: d.needs,
		}
	}
	return all
}

// described is a struct with its schema.
type described struct {
	spec.SchemaProps
	ref   common.ReferenceCallback
	needs []string // names of the types that its schema refers to
}

func (d *described) add(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			d.add(f.Type)
			continue
		}
		d.Properties[name] = d.property(f.Type, help[name])
		if option != "omitempty" {
			d.Required = append(d.Required, name)
		}
	}
}

func (d *described) property(t reflect.Type, text string) spec.Schema {
	p := spec.SchemaProps{Description: text}
	switch {
	case t.Kind() == reflect.Slice:
		item := d.property(t.Elem(), "")
		if item.Default = map[string]any{}; t.Elem().Kind() == reflect.String {
			item.Default = ""
		}
		p.Type, p.Items = []string{"array"}, &spec.SchemaOrArray{Schema: &item}
	case t.Kind() == reflect.String:
		p.Type = []string{"string"}
	case t.Kind() == reflect.Int64:
		p.Type, p.Format = []string{"integer"}, "int64"
	default:
		name := util.GetCanonicalTypeName(reflect.Zero(t).Interface())
		d.needs = append(d.needs, name)
		p.Ref = d.ref(name)
		if t.Name() != "MicroTime" && t.Name() != "RawExtension" {
			p.Default = map[string]any{}
		}
	}
	return spec.Schema{SchemaProps: p}
}
