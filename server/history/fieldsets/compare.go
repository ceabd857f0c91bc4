package fieldsets

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Touched is a field that a change touched, or an item of a list.
type Touched struct {
	// Field is its name, in the form that server-side apply uses in messages:
	// spec.ports[port=53,protocol="UDP"].name
	Field    string
	What     What
	Old, New any
}

// What is what a change did to a field.
type What string

// The kinds of differences. An item that has moved may also have changed; then both are reported.
const (
	Added   What = "added"
	Removed What = "removed"
	Changed What = "changed"
	Moved   What = "moved"
)

// These fields differ in nearly every version, and do not say what was changed.
var unsaid = []string{"managedFields", "resourceVersion", "generation"}

// Content returns the part of an object that is compared. It shares its parts with the object.
func Content(object map[string]any) map[string]any {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	out, kept := maps.Clone(object), maps.Clone(meta)
	for _, field := range unsaid {
		delete(kept, field)
	}
	out["metadata"] = kept
	return out
}

const (
	// maxDepth is the depth down to which fields are named: a deeper value is compared as a whole.
	maxDepth = 64
	// maxName is the approximate length limit of a field's name.
	maxName = 1 << 10
)

// Compare returns the fields that differ in two objects, in the order of the new object. A map or an item
// that only one of the objects has is reported as a whole. Compare returns at most most fields, and the
// number of further ones, among which are those whose names are too long.
func Compare(old, new map[string]any, lists *Lists, most int) (touched []Touched, more int) {
	c := &comparison{most: most}
	c.maps(old, new, lists)
	return c.touched, c.more
}

// CompareItems is Compare for the followed items of lists and for what is in them, only.
func CompareItems(old, new map[string]any, lists *Lists, most int) (touched []Touched, more int) {
	c := &comparison{most: most, itemsAlone: true}
	c.maps(old, new, lists)
	return c.touched, c.more
}

type comparison struct {
	most       int
	itemsAlone bool
	touched    []Touched
	more       int

	path   fieldpath.Path // of the values that are compared
	length int            // approximate length of the path as text
	items  int            // list items on the path
}

// in compares what is below an element of the path. length is the approximate length of its text.
func (c *comparison) in(e fieldpath.PathElement, length int, compare func()) {
	before := *c
	c.path, c.length = append(c.path, e), c.length+length
	if e.FieldName == nil {
		c.items++
	}
	compare()
	c.path, c.length, c.items = before.path, before.length, before.items
}

func (c *comparison) note(what What, old, new any) {
	switch {
	case c.itemsAlone && c.items == 0:
	case len(c.touched) == c.most || c.length > maxName:
		c.more++
	default:
		c.touched = append(c.touched, Touched{strings.TrimPrefix(c.path.String(), "."), what, old, new})
	}
}

func (c *comparison) values(old, new any, at *Lists) {
	if len(c.path) < maxDepth {
		switch o := old.(type) {
		case map[string]any:
			if n, ok := new.(map[string]any); ok {
				c.maps(o, n, at)
				return
			}
		case []any:
			n, ok := new.([]any)
			if before, after, known := at.names(o, n); ok && known {
				c.lists(&twoLists{o, n, before, after}, at)
				return
			}
		}
	}
	if !reflect.DeepEqual(old, new) {
		c.note(Changed, old, new)
	}
}

func (c *comparison) maps(old, new map[string]any, at *Lists) {
	for _, key := range unionOf(old, new) {
		o, inOld := old[key]
		n, inNew := new[key]
		c.in(fieldpath.PathElement{FieldName: &key}, len(key), func() {
			switch {
			case !inOld:
				c.note(Added, nil, n)
			case !inNew:
				c.note(Removed, o, nil)
			default:
				c.values(o, n, at.Field(key))
			}
		})
	}
}

// unionOf returns the keys of two maps, sorted.
func unionOf(a, b map[string]any) []string {
	keys := make([]string, 0, max(len(a), len(b)))
	for key := range a {
		keys = append(keys, key)
	}
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// twoLists are two states of a list, with the names of their items.
type twoLists struct {
	old, new      []any
	before, after []string
}

func (c *comparison) lists(l *twoLists, at *Lists) {
	from := followNames(l.before, l.after)
	stayed, hasMoved := make([]bool, len(l.old)), moved(from)
	for i, item := range l.new {
		c.in(at.keys.element(item), len(l.after[i]), func() {
			if from[i] < 0 {
				c.note(Added, nil, item)
				return
			}
			stayed[from[i]] = true
			if hasMoved[i] {
				c.note(Moved, nil, nil)
			}
			c.values(l.old[from[i]], item, at.Items())
		})
	}
	for i, item := range l.old {
		if !stayed[i] {
			c.in(at.keys.element(item), len(l.before[i]), func() { c.note(Removed, item, nil) })
		}
	}
}

// Names returns the names of the fields that a change of an object touched: at most most names and mostBytes
// bytes. more is the number of further ones.
func Names(old, new map[string]any, most, mostBytes int) (names []string, more int) {
	touched, more := Compare(Content(old), Content(new), ListsOf(old, new), most)
	bytes := 0
	for i, t := range touched {
		if bytes += len(t.Field); bytes > mostBytes {
			return names, more + len(touched) - i
		}
		names = append(names, t.Field)
	}
	return slices.Compact(names), more // an item may have moved and changed
}

// maxValue is the length to which String shortens a value.
const maxValue = 80

// String describes the change, with the values if both are plain.
func (t Touched) String() string {
	if t.What == Changed && isPlain(t.Old) && isPlain(t.New) {
		return t.Field + ": " + textOf(t.Old) + " → " + textOf(t.New)
	}
	return t.Field + ": " + string(t.What)
}

func textOf(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "?"
	}
	runes := []rune(strings.TrimSuffix(b.String(), "\n"))
	if len(runes) > maxValue {
		return string(runes[:maxValue]) + "…"
	}
	return string(runes)
}
