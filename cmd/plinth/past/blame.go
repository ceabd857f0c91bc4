package past

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/plinth-io/plinth/server/history/fieldsets"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Line is a line of an object's YAML and the change that made it what it is.
type Line struct {
	Text   string
	Change *historyv1.Version
	// Older is set if the line is from before the oldest version that is kept, which is Change.
	Older bool
}

// Blame follows the fields of an object through its versions and says which change gave each line of its
// YAML what it has, up to a moment.
//
// Fields are followed by their path, not by their place in the text. A line with a value is of the change
// that set this value last, after another value or none; a line that opens a map or a list is of the
// change with which it came to have fields or items. Items of lists are followed as followItems says.
func (h *History) Blame(ctx context.Context, t Target, at Moment, view View) ([]Line, error) {
	at, err := h.fix(ctx, t, at)
	if err != nil {
		return nil, err
	}
	all, err := h.incarnation(ctx, t, at)
	if err != nil {
		return nil, err
	}
	return blame(all, view)
}

// incarnation returns the versions that are kept of the object that is there at a moment, the oldest
// first.
func (h *History) incarnation(ctx context.Context, t Target, at Moment) ([]*historyv1.Version, error) {
	if !at.IsNow() { // a moment that is not known, or none yet
		if _, err := h.At(ctx, t, at); err != nil {
			return nil, err
		}
	}
	var all []*historyv1.Version
	for v, err := range h.Versions(ctx, Query{}.ToObject(t).Bound(historyv1.FieldUntil, at)) {
		if err != nil {
			return nil, err
		}
		if len(all) == 0 && v.Action == historyv1.Deleted {
			return nil, whyDeleted(t, v.Description)
		}
		if len(all) > 0 && (v.Action == historyv1.Deleted || v.Object.CreateRevision != all[0].Object.CreateRevision) {
			break
		}
		all = append(all, &v)
	}
	if len(all) == 0 {
		return nil, h.notThere(ctx, t, at)
	}
	slices.Reverse(all)
	return all, nil
}

func whyDeleted(t Target, d historyv1.Description) error {
	return fmt.Errorf("%s was deleted by %s at %s, revision %d; plinth undelete %s brings it back",
		t, Person(d), d.Time.UTC().Format(time.RFC3339), d.Revision, t.words())
}

// blame is Blame for versions of one object, the oldest first.
func blame(all []*historyv1.Version, view View) ([]Line, error) {
	var tree *node
	lists := fieldsets.ListsOf()
	var last *unstructured.Unstructured
	for i, v := range all {
		object, err := Object(v)
		if err != nil {
			return nil, err
		}
		lists.Learn(object.Object)
		tree, last = tree.become(view.Content(object), place{i, lists}), object
	}
	text, err := view.Text(last)
	if err != nil {
		return nil, err
	}
	owners, err := ownersOfLines(text, tree)
	if err != nil {
		return nil, err
	}
	lines := make([]Line, len(owners))
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		owner := owners[i]
		lines[i] = Line{Text: line, Change: all[owner], Older: owner == 0 && all[0].Action != historyv1.Created}
	}
	return lines, nil
}

// node is a value in an object and the change that it is from, as an index of versions. A map without
// fields and a list without items count as plain values.
type node struct {
	change int
	value  any // plain
	fields map[string]*node
	items  []*node
}

// place is where a change sets a value.
type place struct {
	change int
	lists  *fieldsets.Lists
}

func (p place) field(name string) place { return place{p.change, p.lists.Field(name)} }
func (p place) items() place            { return place{p.change, p.lists.Items()} }

// become returns the node for a value that replaces n. n may be nil.
func (n *node) become(value any, at place) *node {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 {
			return n.becomeMap(value, at)
		}
	case []any:
		if len(value) > 0 {
			return n.becomeList(value, at)
		}
	}
	if n != nil && n.fields == nil && n.items == nil && reflect.DeepEqual(n.value, value) {
		return n
	}
	return &node{change: at.change, value: value}
}

func (n *node) becomeMap(value map[string]any, at place) *node {
	out := &node{change: at.change, fields: make(map[string]*node, len(value))}
	var old map[string]*node
	if n != nil && n.fields != nil {
		out.change, old = n.change, n.fields
	}
	for key, v := range value {
		out.fields[key] = old[key].become(v, at.field(key))
	}
	return out
}

func (n *node) becomeList(value []any, at place) *node {
	out := &node{change: at.change, items: make([]*node, len(value))}
	var old []*node
	if n != nil && n.items != nil {
		out.change, old = n.change, n.items
	}
	before := make([]any, len(old))
	for i, item := range old {
		before[i] = item.plain()
	}
	for i, from := range followItems(before, value, at) {
		var was *node
		if from >= 0 {
			was = old[from]
		}
		out.items[i] = was.become(value[i], at.items())
	}
	return out
}

// plain returns the value of the node without changes.
func (n *node) plain() any {
	switch {
	case n.fields != nil:
		out := make(map[string]any, len(n.fields))
		for key, field := range n.fields {
			out[key] = field.plain()
		}
		return out
	case n.items != nil:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.plain()
		}
		return out
	}
	return n.value
}

// otherBreaks replaces the line ends of Unicode, which count as lines for YAML's parser, but not for us.
var otherBreaks = strings.NewReplacer("\u0085", "_", "\u2028", "_", "\u2029", "_")

// ownersOfLines returns the change of each line of a YAML text.
func ownersOfLines(text []byte, tree *node) ([]int, error) {
	var document goyaml.Node
	if err := goyaml.Unmarshal([]byte(otherBreaks.Replace(string(text))), &document); err != nil {
		return nil, err
	}
	owners := make([]int, strings.Count(string(text), "\n"))
	for i := range owners {
		owners[i] = -1
	}
	if len(document.Content) > 0 {
		own(owners, document.Content[0], tree)
	}
	for i := range owners { // the further lines of a text in several
		if owners[i] < 0 && i > 0 {
			owners[i] = owners[i-1]
		}
	}
	return owners, nil
}

// own notes the changes of the lines of a YAML node. What is deeper comes later, so that the line of an
// item is of the field that stands on it.
func own(owners []int, n *goyaml.Node, tree *node) {
	switch {
	case n.Kind == goyaml.MappingNode && tree.fields != nil:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			field := tree.fields[key.Value]
			if field == nil {
				continue // a key that YAML writes in another way has the change of the line above
			}
			owners[key.Line-1] = field.change
			if value.Kind != goyaml.ScalarNode {
				own(owners, value, field)
			}
		}
	case n.Kind == goyaml.SequenceNode && tree.items != nil:
		for i, item := range n.Content {
			owners[item.Line-1] = tree.items[i].change
			own(owners, item, tree.items[i])
		}
	}
}
