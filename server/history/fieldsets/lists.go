package fieldsets

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Lists has the lists at a place in an object, and below it, whose items can be followed. All items of a list
// are one place. The zero value and nil have no lists.
type Lists struct {
	fields map[string]*Lists
	items  *Lists
	keys   *Keys // nil: this place is not a list, or its items cannot be followed
}

// Keys say how the items of a list are distinguished: by these fields or, if there are none, by their values.
type Keys struct{ Fields []string }

// mostKeys is the most fields that distinguish items. Schemas have two or three.
const mostKeys = 16

// ListsOf returns the lists that the managedFields of objects contain. If they contradict each other, the
// later object counts, because its schema is newer.
func ListsOf(objects ...map[string]any) *Lists {
	l := &Lists{}
	for _, object := range objects {
		l.Learn(object)
	}
	return l
}

// Learn adds the lists that an object's managedFields contain. It ignores what it cannot read.
func (l *Lists) Learn(object map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	managers, _ := meta["managedFields"].([]any)
	for _, m := range managers {
		manager, _ := m.(map[string]any)
		owned, _ := manager["fieldsV1"].(map[string]any)
		l.learn(owned)
	}
}

// learn adds the lists of a set of fields. If a set contradicts itself, the result is still the same each
// time.
func (l *Lists) learn(owned map[string]any) {
	for _, text := range slices.Sorted(maps.Keys(owned)) {
		below, isSet := owned[text].(map[string]any)
		e, err := fieldpath.DeserializePathElement(text)
		if !isSet || err != nil {
			continue // "." is one of these
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

// Field returns the place of a field of the map at this place.
func (l *Lists) Field(name string) *Lists {
	if l == nil {
		return nil
	}
	return l.fields[name]
}

// Items returns the place of the items of the list at this place.
func (l *Lists) Items() *Lists {
	if l == nil {
		return nil
	}
	return l.items
}

// Keys returns how the items of this list are distinguished; nil if that is not known.
func (l *Lists) Keys() *Keys {
	if l == nil {
		return nil
	}
	return l.keys
}
