package manifest

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// current returns an object, or a list of objects, in current versions.
func current(obj map[string]any) (map[string]any, []Note) {
	gvk := kindOf(obj)
	items, isList := obj["items"].([]any)
	switch {
	case gvk.Group == "" && gvk.Kind == "List" && isList:
		return currentItems(obj, items, schema.GroupVersionKind{})
	case isList && strings.HasSuffix(gvk.Kind, "List"):
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		return currentList(obj, items, gvk)
	}
	now, note, err := currentObject(obj)
	if errors.Is(err, errNothing) {
		return obj, nil
	}
	if note.Err = err; err != nil {
		return obj, []Note{note}
	}
	return now, []Note{note}
}

// currentList is for lists of one kind, whose items may lack kind and apiVersion. All of
// them change, or none.
func currentList(list map[string]any, items []any, of schema.GroupVersionKind) (map[string]any, []Note) {
	now, notes := currentItems(list, items, of)
	for _, n := range notes {
		if n.Err != nil {
			return list, []Note{n}
		}
	}
	if len(notes) > 0 {
		now["apiVersion"] = notes[0].To.GroupVersion().String()
	}
	return now, notes
}

// currentItems changes each item by itself. of is the kind of items that have none.
func currentItems(list map[string]any, items []any, of schema.GroupVersionKind) (map[string]any, []Note) {
	now := clone(list)
	changed := make([]any, len(items))
	var notes []Note
	for i, item := range items {
		changed[i] = item
		obj, ok := item.(map[string]any)
		if !ok {
			continue
		}
		bare := obj["kind"] == nil && !of.Empty()
		if bare {
			obj = clone(obj)
			obj["apiVersion"], obj["kind"] = of.GroupVersion().String(), of.Kind
		}
		next, found := current(obj)
		if bare {
			delete(next, "apiVersion")
			delete(next, "kind")
		}
		changed[i] = next
		for _, n := range found {
			n.Item = i + 1
			notes = append(notes, n)
		}
	}
	now["items"] = changed
	return now, notes
}

func clone(m map[string]any) map[string]any {
	c := make(map[string]any, len(m))
	for key, v := range m {
		c[key] = v
	}
	return c
}

func kindOf(obj map[string]any) schema.GroupVersionKind {
	version, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	return schema.FromAPIVersionAndKind(version, kind)
}
