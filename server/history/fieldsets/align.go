package fieldsets

import "maps"

// Align returns an old value with the items of followed lists in the order that they have in a new value, so that a
// comparison line by line finds what was changed in items and not that they have moved. An item that is gone stays
// behind the one it was behind. The value shares its parts with the old one.
func Align(old, new any, at *Lists) any {
	switch o := old.(type) {
	case map[string]any:
		if n, ok := new.(map[string]any); ok {
			return alignMap(o, n, at)
		}
	case []any:
		n, _ := new.([]any)
		if from, known := at.Follow(o, n); known {
			return alignList(o, n, from, at)
		}
	}
	return old
}

func alignMap(old, new map[string]any, at *Lists) map[string]any {
	if at == nil {
		return old // nothing is known below
	}
	out := maps.Clone(old)
	for key := range at.fields {
		if o, ok := old[key]; ok {
			out[key] = Align(o, new[key], at.Field(key))
		}
	}
	return out
}

func alignList(old, new []any, from []int, at *Lists) []any {
	stayed := make([]bool, len(old))
	for _, i := range from {
		if i >= 0 {
			stayed[i] = true
		}
	}
	out := make([]any, 0, len(old))
	takeGone := func(i int) {
		for ; i < len(old) && !stayed[i]; i++ {
			out = append(out, old[i])
		}
	}
	takeGone(0)
	for i, was := range from {
		if was >= 0 {
			out = append(out, Align(old[was], new[i], at.Items()))
			takeGone(was + 1)
		}
	}
	return out
}
