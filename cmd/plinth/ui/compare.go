package ui

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/server/history/fieldsets"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	"github.com/plinth-io/plinth/cmd/plinth/units"
)

// comparison is what differs between two states of an object: by fields, and as text.
type comparison struct {
	Fields []fieldChange
	More   int // fields
	Rows   []diffRow
}

// fieldChange is a field, or an item of a list, that differs.
type fieldChange struct {
	Field    string
	What     fieldsets.What
	Old, New []diffPart // its values, none where it was not or is not
}

// mostFields is how many fields a comparison names.
const mostFields = 100

// compareObjects compares two states of an object, of which one may be nil. What only the server counts is left out.
func compareObjects(old, new *unstructured.Unstructured, view past.View) (c comparison, err error) {
	if old != nil && new != nil {
		lists := fieldsets.ListsOf(old.Object, new.Object)
		c.addFields(view.Content(old), view.Content(new), lists)
		old = &unstructured.Unstructured{Object: fieldsets.Align(old.Object, new.Object, lists).(map[string]any)}
	}
	a, err := view.Text(old)
	if err != nil {
		return c, err
	}
	b, err := view.Text(new)
	if err == nil {
		c.Rows = diffRows(a, b)
	}
	return c, err
}

// viewOf is how objects are shown: with the values of Secrets only if they are asked for. Values that are the same are
// hidden by the same text wherever the view is used.
func viewOf(s *subject) past.View {
	if s.Reveal {
		return past.View{}
	}
	return past.View{Hide: newMask().object}
}

func (c *comparison) addFields(old, new map[string]any, lists *fieldsets.Lists) {
	touched, more := fieldsets.Compare(old, new, lists, mostFields)
	c.More = more
	for _, t := range touched {
		f := fieldChange{Field: t.Field, What: t.What}
		a, b := valueText(t.Old), valueText(t.New)
		var markedOld, markedNew []bool
		if t.What == fieldsets.Changed && likenessOf(a, b) >= alike {
			markedOld, markedNew = marksOf(a, b)
		}
		if t.What == fieldsets.Changed || t.What == fieldsets.Removed {
			f.Old = valueParts(a, markedOld)
		}
		if t.What == fieldsets.Changed || t.What == fieldsets.Added {
			f.New = valueParts(b, markedNew)
		}
		c.Fields = append(c.Fields, f)
	}
}

// longestValue is the length to which values of fields are cut; the difference of the texts has them whole.
const longestValue = 160

// valueText writes a value on one line.
func valueText(value any) string {
	text, ok := value.(string)
	switch {
	case ok && strings.Contains(strings.TrimSuffix(text, "\n"), "\n"):
		return fmt.Sprintf("%d lines, %s", strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1, units.Bytes(int64(len(text))))
	case ok && text == "":
		return `""`
	case !ok:
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil {
			return "?"
		}
		text = b.String()
	}
	text = strings.TrimSuffix(text, "\n")
	if utf8.RuneCountInString(text) > longestValue {
		text = string([]rune(text)[:longestValue]) + "…"
	}
	return text
}

// valueParts cuts a value where its marks begin and end.
func valueParts(text string, marks []bool) (parts []diffPart) {
	for begin := 0; begin < len(text); {
		end := begin + 1
		for end < len(text) && (marks == nil || marks[end] == marks[begin]) {
			end++
		}
		parts = append(parts, diffPart{Text: text[begin:end], Marked: marks != nil && marks[begin]})
		begin = end
	}
	return parts
}
