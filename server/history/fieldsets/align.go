package fieldsets

import "maps"

// Align returns an old value in which the items of the lists in at have the order of the new value, so that a
// comparison by lines shows what changed in the items, and not that they moved. A removed item stays behind
// its predecessor. The result shares parts with the old value.
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
		return old // at knows nothing below this place
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
