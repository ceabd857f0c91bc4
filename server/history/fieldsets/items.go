package fieldsets

import (
	"encoding/json"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

// Follow says for each new item of the list that is here which old item it was, -1 for none. It is false if that is
// not known: no manager tells the keys, or they do not tell the items of one of the lists apart.
func (l *Lists) Follow(old, new []any) (from []int, known bool) {
	before, after, known := l.names(old, new)
	if !known {
		return nil, false
	}
	return followNames(before, after), true
}

// names returns the names of the items of two states of the list that is here, if all have one.
func (l *Lists) names(old, new []any) (before, after []string, known bool) {
	if before, known = l.Keys().names(old); known {
		after, known = l.Keys().names(new)
	}
	return before, after, known
}

// followNames is Follow by the names of items.
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

// names returns a name for each item by which it is told apart from the others; false if two have the same, or if an
// item has none. A field that an item lacks has its default, which is none like no other.
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

// element returns how an item that has a name is written in a path.
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

// moved says which of the items that were there have another place among the others than before: as few as possible,
// so that the rest, the longest sequence that is in order, has stayed. from is what Follow returns.
func moved(from []int) []bool {
	out := make([]bool, len(from))
	var ends []int // the last item of a sequence of each length, the one whose old place is the lowest
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
