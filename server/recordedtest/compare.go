package recordedtest

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// placeholders are words of a recording and what may stand there instead.
var placeholders = map[string]string{
	"<time>":    `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`,
	"<uid>":     `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`,
	"<version>": `\d+`,
	"<name>":    `[a-z0-9]{5}`, // the end of a generated name
	"<age>":     `(\d+[smhdy])+`,
}

var placeholder = regexp.MustCompile(`<(time|uid|version|name|age)>`)

// compare tells how got differs from want, a recording that leaves out omitted.
func compare(want, got []any, omitted map[string]bool) string {
	return cmp.Diff(alike(want, want, "", omitted), alike(want, got, "", omitted))
}

// alike returns got without the omitted fields that want does not have, and with want's
// placeholders instead of what they stand for. The field named parent holds got.
func alike(want, got any, parent string, omitted map[string]bool) any {
	switch got := got.(type) {
	case map[string]any:
		want, _ := want.(map[string]any)
		return alikeObject(want, got, parent, omitted)
	case []any:
		want, _ := want.([]any)
		list := make([]any, len(got))
		for i := range got {
			list[i] = alike(at(want, i), got[i], parent, omitted)
		}
		return list
	case string:
		want, _ := want.(string)
		return alikeText(want, got)
	case float64: // from a test that has read the answer itself
		if want, ok := want.(json.Number); ok {
			if f, err := want.Float64(); err == nil && f == got {
				return want
			}
		}
	}
	return got
}

func alikeObject(want, got map[string]any, parent string, omitted map[string]bool) any {
	object := map[string]any{}
	for name, value := range got {
		recorded, ok := want[name]
		if !ok && (omitted[name] || omitted[parent+"."+name]) {
			continue
		}
		object[name] = alike(recorded, value, name, omitted)
	}
	return object
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func alikeText(want, got string) string {
	// Messages of upstream that go-cmp made have one or the other space, by the binary.
	got = strings.ReplaceAll(got, "\u00a0", " ")
	if !placeholder.MatchString(want) {
		return got
	}
	pattern := placeholder.ReplaceAllStringFunc(regexp.QuoteMeta(want), func(word string) string { return placeholders[word] })
	if regexp.MustCompile("^" + pattern + "$").MatchString(got) {
		return want
	}
	return got
}
