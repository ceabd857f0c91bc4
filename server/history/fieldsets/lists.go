package fieldsets

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Lists are the lists at a place in an object, and below it, whose items can be followed. All items of a list are one
// place. The zero value and nil know of none.
type Lists struct {
	fields map[string]*Lists
	items  *Lists
	keys   *Keys // nil: what is here is no list, or one whose items cannot be followed
}

// Keys are by what the items of a list are told apart: by these fields, or, if there are none, by their value.
type Keys struct{ Fields []string }

// mostKeys is how many fields tell items apart at most. Schemas have two or three.
const mostKeys = 16

// ListsOf returns the lists of which the managedFields of objects tell. Of what they say differently the later one
// counts, which is of a newer schema.
func ListsOf(objects ...map[string]any) *Lists {
	l := &Lists{}
	for _, object := range objects {
		l.Learn(object)
	}
	return l
}

// Learn adds what the managedFields of an object tell. What cannot be read there says nothing.
func (l *Lists) Learn(object map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	managers, _ := meta["managedFields"].([]any)
	for _, m := range managers {
		manager, _ := m.(map[string]any)
		owned, _ := manager["fieldsV1"].(map[string]any)
		l.learn(owned)
	}
}

// learn adds what a set of fields tells. A set that says two things of one list says the same each time it is asked.
func (l *Lists) learn(owned map[string]any) {
	for _, text := range slices.Sorted(maps.Keys(owned)) {
		below, isSet := owned[text].(map[string]any)
		e, err := fieldpath.DeserializePathElement(text)
		if !isSet || err != nil {
			continue // that is also "."
		}
		switch {
		case e.FieldName != nil:
			if len(below) > 0 {
				l.makeField(*e.FieldName).learn(below)
			}
			continue
		case e.Key != nil && len(*e.Key) > 0 && len(*e.Key) <= mostKeys:
			l.keys = &Keys{}
			for _, f := range *e.Key {
				l.keys.Fields = append(l.keys.Fields, f.Name)
			}
		case e.Value != nil:
			l.keys = &Keys{}
		default:
			continue
		}
		if l.items == nil {
			l.items = &Lists{}
		}
		l.items.learn(below)
	}
}

func (l *Lists) makeField(name string) *Lists {
	if l.fields == nil {
		l.fields = map[string]*Lists{}
	}
	if l.fields[name] == nil {
		l.fields[name] = &Lists{}
	}
	return l.fields[name]
}

// Field is the place of a field of the map that is here.
func (l *Lists) Field(name string) *Lists {
	if l == nil {
		return nil
	}
	return l.fields[name]
}

// Items is the place of the items of the list that is here.
func (l *Lists) Items() *Lists {
	if l == nil {
		return nil
	}
	return l.items
}

// Keys returns by what the items of the list that is here are told apart, nil if that is not known.
func (l *Lists) Keys() *Keys {
	if l == nil {
		return nil
	}
	return l.keys
}
