// Package listkeys learns by what the items of an object's lists are told apart from the sets of fields
// that the object's managers own: server-side apply names an item of a list there by the merge keys that
// its schema has, and an item of a set by its value. So the keys of every kind are known, also of custom
// resources, without its schema.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
package listkeys

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Keys are those of the lists of an object. The zero value knows none.
type Keys struct{ lists map[Path]List }

// Path is the place of a list: the names of the fields that lead there. All items of a list are one place.
type Path string

// Field is the place of a field of a map, Items that of the items of a list.
func (p Path) Field(name string) Path { return p + "\x00f" + Path(name) }
func (p Path) Items() Path            { return p + "\x00i" }

// List is by what the items of a list are told apart: by these fields, or, if there are none, by their value.
type List struct{ Fields []string }

// Learn adds what the managers of an object say. A manager whose fields cannot be read says nothing.
func (k *Keys) Learn(managers []metav1.ManagedFieldsEntry) {
	for _, m := range managers {
		if m.FieldsV1 == nil {
			continue
		}
		var owned fieldpath.Set
		if err := owned.FromJSON(m.FieldsV1.GetRawReader()); err == nil {
			owned.Iterate(k.learn)
		}
	}
}

// learn adds the lists that a path leads through.
func (k *Keys) learn(path fieldpath.Path) {
	var at Path
	for _, e := range path {
		switch {
		case e.FieldName != nil:
			at = at.Field(*e.FieldName)
			continue
		case e.Key != nil:
			var fields []string
			for _, f := range *e.Key {
				fields = append(fields, f.Name)
			}
			k.add(at, List{fields})
		case e.Value != nil:
			k.add(at, List{})
		}
		at = at.Items()
	}
}

func (k *Keys) add(at Path, list List) {
	if k.lists == nil {
		k.lists = map[Path]List{}
	}
	k.lists[at] = list // another one is that of a newer schema
}

// Of returns by what the items of a list are told apart, if that is known.
func (k *Keys) Of(list Path) (List, bool) {
	l, ok := k.lists[list]
	return l, ok
}

// Names returns a name for each item, by which it is told apart from the others, and whether each has one of its own:
// not if an item is no map where there are fields, or if two have the same. A field that an item lacks
// has its default, which is none like no other.
func (l List) Names(items []any) (names []string, ok bool) {
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		named := []any{item}
		if len(l.Fields) > 0 {
			fields, isMap := item.(map[string]any)
			if !isMap {
				return nil, false
			}
			named = nil
			for _, f := range l.Fields {
				named = append(named, fields[f])
			}
		}
		text, err := json.Marshal(named)
		if err != nil || seen[string(text)] {
			return nil, false
		}
		seen[string(text)] = true
		names = append(names, string(text))
	}
	return names, true
}
