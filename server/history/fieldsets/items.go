package fieldsets

import (
	"encoding/json"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

// Follow returns for each new item of this list the index of the old item that it was, or -1. known is false
// if items cannot be matched: because no manager gives the keys, or because the keys do not distinguish the
// items of one of the lists.
func (l *Lists) Follow(old, new []any) (from []int, known bool) {
	before, after, known := l.names(old, new)
	if !known {
		return nil, false
	}
	return followNames(before, after), true
}

// names returns the names of the items in two states of this list, if every item has one.
func (l *Lists) names(old, new []any) (before, after []string, known bool) {
	if before, known = l.Keys().names(old); known {
		after, known = l.Keys().names(new)
	}
	return before, after, known
}

// followNames is Follow for the names of items.
func followNames(before, after []string) (from []int) {
	places := placesOf(before)
	from = make([]int, len(after))
	for i, name := range after {
		from[i] = -1
		if at, ok := places[name]; ok {
			from[i] = at
		}
	}
	return from
}

func placesOf(names []string) map[string]int {
	places := make(map[string]int, len(names))
	for i, name := range names {
		places[name] = i
	}
	return places
}

// names returns a unique name for each item; ok is false if two items have the same name, or if an item has
// none. An item that lacks a key field has the default there, which differs from every value.
func (k *Keys) names(items []any) (names []string, ok bool) {
	if k == nil {
		return nil, false
	}
	seen := make(map[string]bool, len(items))
	names = make([]string, len(items))
	for i, item := range items {
		name, ok := k.name(item)
		if !ok || seen[name] {
			return nil, false
		}
		names[i], seen[name] = name, true
	}
	return names, true
}

func (k *Keys) name(item any) (name string, ok bool) {
	named := []any{item}
	if len(k.Fields) > 0 {
		fields, isMap := item.(map[string]any)
		if !isMap {
			return "", false
		}
		named = named[:0]
		for _, f := range k.Fields {
			if !isPlain(fields[f]) {
				return "", false
			}
			named = append(named, fields[f])
		}
	}
	text, err := json.Marshal(named)
	return string(text), err == nil
}

func isPlain(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// element returns the path element of an item that has a name.
func (k *Keys) element(item any) fieldpath.PathElement {
	if len(k.Fields) == 0 {
		v := value.NewValueInterface(item)
		return fieldpath.PathElement{Value: &v}
	}
	fields, _ := item.(map[string]any)
	key := make(value.FieldList, len(k.Fields))
	for i, f := range k.Fields {
		key[i] = value.Field{Name: f, Value: value.NewValueInterface(fields[f])}
	}
	return fieldpath.PathElement{Key: &key}
}

// moved reports which of the old items changed their place relative to the others. As few as possible count
// as moved: the items of the longest increasing sequence have stayed. from is the result of Follow.
func moved(from []int) []bool {
	out := make([]bool, len(from))
	var ends []int // for each length, the last item of that sequence whose last old place is the lowest
	before := make([]int, len(from))
	for i, place := range from {
		if place < 0 {
			continue
		}
		out[i] = true
		low, high := 0, len(ends)
		for low < high {
			if middle := (low + high) / 2; from[ends[middle]] < place {
				low = middle + 1
			} else {
				high = middle
			}
		}
		if before[i] = -1; low > 0 {
			before[i] = ends[low-1]
		}
		if low == len(ends) {
			ends = append(ends, i)
		} else {
			ends[low] = i
		}
	}
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			out[i] = false
		}
	}
	return out
}
