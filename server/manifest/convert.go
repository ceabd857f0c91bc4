package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// currentObject returns an object in its current version, and errNothing if it is current
// already.
func currentObject(obj map[string]any) (map[string]any, Note, error) {
	gvk := kindOf(obj)
	note := Note{From: gvk, Object: nameOf(obj)}
	if gvk.Version == "" || gvk.Kind == "" {
		return nil, note, errNothing
	}
	next, err := builtin.SuccessorOf(gvk)
	if err != nil {
		return nil, note, err
	}
	if next == nil {
		return nil, note, errNothing
	}
	note.To, note.Since = next.GVK, next.Since
	c := conversion{scheme: next.Scheme, from: gvk, reads: gvk, to: next.GVK}
	if next.Gone {
		c.reads, obj = next.GVK, alike(obj, gvk)
	}
	now, dropped, err := c.convert(obj)
	note.Dropped = dropped
	return now, note, err
}

func nameOf(obj map[string]any) string {
	m, _ := obj["metadata"].(map[string]any)
	name, _ := m["name"].(string)
	if prefix, _ := m["generateName"].(string); name == "" && prefix != "" {
		name = prefix + "*"
	}
	if namespace, _ := m["namespace"].(string); namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// conversion brings objects from one version to another.
type conversion struct {
	scheme   *runtime.Scheme
	from, to schema.GroupVersionKind
	reads    schema.GroupVersionKind // whose type has the fields of old objects
}

// convert returns obj in the other version, with as few fields as make the same object, and
// the fields of obj that the old version does not know.
func (c conversion) convert(obj map[string]any) (now map[string]any, dropped string, err error) {
	old, err := c.scheme.New(c.reads)
	if err != nil {
		return nil, "", err
	}
	dropped, err = decode(obj, old)
	if err != nil {
		return nil, "", fmt.Errorf("%s %s %s: %w", c.from.GroupVersion(), c.from.Kind, nameOf(obj), err)
	}
	c.scheme.Default(old)
	new, err := c.translate(old)
	if err != nil {
		return nil, "", fmt.Errorf("convert %s %s %s: %w", c.from.GroupVersion(), c.from.Kind, nameOf(obj), err)
	}
	adjust(new)
	if err := check(new); err != nil {
		return nil, "", fmt.Errorf("%s %s %s is not valid in %s: %w", c.from.GroupVersion(), c.from.Kind, nameOf(obj), c.to.GroupVersion(), err)
	}
	full, err := c.complete(new)
	if err != nil {
		return nil, "", err
	}
	now, err = c.shorten(full, obj)
	return now, dropped, err
}

// translate goes by way of the internal version, as upstream's conversions do.
func (c conversion) translate(old runtime.Object) (runtime.Object, error) {
	hub, err := c.internal(old)
	if err != nil {
		return nil, err
	}
	new, err := c.scheme.New(c.to)
	if err != nil {
		return nil, err
	}
	if err := c.scheme.Convert(hub, new, nil); err != nil {
		return nil, err
	}
	new.GetObjectKind().SetGroupVersionKind(c.to)
	return new, nil
}

func (c conversion) internal(obj runtime.Object) (runtime.Object, error) {
	hub, err := c.scheme.New(schema.GroupVersionKind{Group: c.to.Group, Version: runtime.APIVersionInternal, Kind: c.to.Kind})
	if err != nil {
		return nil, err
	}
	return hub, c.scheme.Convert(obj, hub, nil)
}

// hub returns the internal object that the server makes of fields: the same as made returns,
// in a tenth of the time.
func (c conversion) hub(fields map[string]any) (runtime.Object, error) {
	obj, err := c.scheme.New(c.to)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, obj); err != nil {
		return nil, err
	}
	c.scheme.Default(obj)
	return c.internal(obj)
}

// complete returns all fields of an object of the new version as a server stores it, with
// defaults and the fields that conversion adds.
func (c conversion) complete(obj runtime.Object) (map[string]any, error) {
	c.scheme.Default(obj)
	obj, err := c.translate(obj)
	if err != nil {
		return nil, err
	}
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	withoutNulls(fields)
	return fields, nil
}

// made returns all fields of the object that the server makes of fields.
func (c conversion) made(fields map[string]any) (map[string]any, error) {
	obj, err := c.scheme.New(c.to)
	if err != nil {
		return nil, err
	}
	if _, err := decode(fields, obj); err != nil {
		return nil, err
	}
	return c.complete(obj)
}

// decode reads fields into an object of a type, and returns the fields that the type does not
// have.
func decode(fields map[string]any, into runtime.Object) (unknown string, err error) {
	b, err := json.Marshal(fields)
	if err != nil {
		return "", err
	}
	strict, err := kjson.UnmarshalStrict(b, into)
	var all []string
	for _, s := range strict {
		text := strings.TrimPrefix(s.Error(), "unknown field ")
		all = append(all, strings.Trim(text, `"`))
	}
	return strings.Join(all, ", "), err
}

// withoutNulls removes fields that are null: null means the same as no field.
func withoutNulls(v any) {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			if value == nil {
				delete(x, key)
			}
			withoutNulls(value)
		}
	case []any:
		for _, value := range x {
			withoutNulls(value)
		}
	}
}
