package fieldsets

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	for _, row := range []struct {
		name, old, new string
		want           string
	}{
		{"nothing", `{a: {b: [1]}}`, `{a: {b: [1]}}`, ``},
		{"fields", `{a: 1, b: {c: x, d: 1}, e: {}, g: 1}`, `{a: 2, b: {c: w, d: 1}, e: {}, f: {x: 1}}`, `a: 1 → 2
b.c: "x" → "w"
f: added
g: removed`},
		{"another type", `{a: 1, b: {}, c: [], d: null, e: "1"}`, `{a: "1", b: [], c: {}, d: {}, e: null}`, `a: 1 → "1"
b: changed
c: changed
d: changed
e: "1" → null`},
		{"a list that nobody knows", `{l: [{name: a}, {name: b}]}`, `{l: [{name: b}, {name: a}]}`, `l: changed`},
		{"ports exchange places", `{ports: [{port: 53, protocol: UDP, name: a}, {port: 53, protocol: TCP, name: b}]}`,
			`{ports: [{port: 53, protocol: TCP, name: b}, {port: 53, protocol: UDP, name: c}]}`, `ports[port=53,protocol="TCP"]: moved
ports[port=53,protocol="UDP"].name: "a" → "c"`},
		{"items come and go", `{ports: [{port: 1, protocol: TCP}, {port: 2, protocol: TCP, name: x}]}`,
			`{ports: [{port: 3, protocol: TCP}, {port: 2, protocol: TCP}]}`, `ports[port=3,protocol="TCP"]: added
ports[port=2,protocol="TCP"].name: removed
ports[port=1,protocol="TCP"]: removed`},
		{"items in items", `{ports: [{port: 1, protocol: TCP, env: [{name: a, value: x}, {name: b, value: x}]}]}`,
			`{ports: [{port: 1, protocol: TCP, env: [{name: c, value: x}, {name: a, value: w}, {name: b, value: x}]}]}`,
			`ports[port=1,protocol="TCP"].env[name="c"]: added
ports[port=1,protocol="TCP"].env[name="a"].value: "x" → "w"`},
		{"two of one name", `{ports: [{port: 1, name: a}, {port: 1, name: b}]}`, `{ports: [{port: 1, name: a}]}`, `ports: changed`},
		{"a set", `{set: [a, b, c]}`, `{set: [c, a, d]}`, `set[="c"]: moved
set[="d"]: added
set[="b"]: removed`},
		{"a list that becomes none", `{set: [a]}`, `{set: null}`, `set: changed`},
		{"a list that becomes empty", `{set: [a]}`, `{set: []}`, `set[="a"]: removed`},
		{"conditions", `{status: {conditions: [{type: Ready, status: "False"}, {type: Done, status: "True"}]}}`,
			`{status: {conditions: [{type: Done, status: "True"}, {type: Ready, status: "True"}]}}`, `status.conditions[type="Done"]: moved
status.conditions[type="Ready"].status: "False" → "True"`},
		{"long values", `{a: ` + strings.Repeat("x", 200) + `}`, `{a: <b>}`, `a: "` + strings.Repeat("x", maxValue-1) + `… → "<b>"`},
	} {
		touched, more := Compare(parse(t, row.old), parse(t, row.new), known(t), 100)
		var lines []string
		for _, one := range touched {
			lines = append(lines, one.String())
		}
		if diff := cmp.Diff(row.want, strings.Join(lines, "\n")); diff != "" || more != 0 {
			t.Errorf("%s, %d more: %s", row.name, more, diff)
		}
	}
}

func TestCompareItems(t *testing.T) {
	old, new := parse(t, `{a: 1, set: [a], l: [1]}`), parse(t, `{a: 2, set: [b, c], l: [2]}`)
	touched, more := CompareItems(old, new, known(t), 2)
	if len(touched) != 2 || more != 1 || touched[0].Field != `set[="b"]` {
		t.Errorf("%v, %d more", touched, more)
	}
}

// TestContent leaves out what differs in every version.
func TestContent(t *testing.T) {
	object := parse(t, `{kind: K, metadata: {name: a, resourceVersion: "1", generation: 2, managedFields: []}}`)
	if diff := cmp.Diff(parse(t, `{kind: K, metadata: {name: a}}`), Content(object)); diff != "" || len(object["metadata"].(map[string]any)) != 4 {
		t.Error(diff)
	}
	if got := Content(map[string]any{"metadata": 1}); got["metadata"] != 1 {
		t.Error(got)
	}
}

func TestNamesOfFields(t *testing.T) {
	old, new := managed(t, `{"f:l":{"k:{\"id\":1}":{}}}`), managed(t)
	old["l"], new["l"] = parse(t, `{l: [{id: 1, v: a}]}`)["l"], parse(t, `{l: [{id: 2}, {id: 1, v: b}]}`)["l"]
	old["metadata"].(map[string]any)["resourceVersion"] = "1"
	names, more := Names(old, new, 10, 1000)
	if diff := cmp.Diff([]string{"l[id=2]", "l[id=1].v"}, names); diff != "" || more != 0 {
		t.Errorf("%d more: %s", more, diff)
	}
	if names, more := Names(old, new, 10, 8); len(names) != 1 || more != 1 {
		t.Errorf("within 8 bytes: %q, %d more", names, more)
	}
	if names, more := Names(old, new, 1, 1000); len(names) != 1 || more != 1 {
		t.Errorf("at most 1: %q, %d more", names, more)
	}
}

// TestLarge bounds the work and the results of objects of all shapes.
func TestLarge(t *testing.T) {
	lists := known(t)
	many := func(n int, value string, reversed bool) map[string]any {
		items := make([]any, n)
		for i := range items {
			port := int64(i)
			if reversed {
				port = int64(n - i)
			}
			items[i] = map[string]any{"port": port, "protocol": "TCP", "name": value}
		}
		return map[string]any{"ports": items}
	}
	deep := func(n int, leaf any) map[string]any {
		at := map[string]any{"a": leaf}
		for range n {
			at = map[string]any{"a": at, "b": leaf}
		}
		return at
	}
	inLists := func(n int, leaf any) map[string]any {
		at := any(leaf)
		for range n {
			at = []any{at}
		}
		return map[string]any{"ports": at}
	}
	named := func(value string) map[string]any {
		m := map[string]any{}
		for i := range 1000 {
			m[fmt.Sprint(strings.Repeat("x", 10_000), i)] = value
		}
		return m
	}
	sets := map[string]any{"f:a": map[string]any{}}
	for range 10_000 {
		sets = map[string]any{"f:a": sets, "v:1": map[string]any{}}
	}
	deepLists := &Lists{}
	deepLists.learn(sets)
	for name, row := range map[string]struct {
		old, new map[string]any
		lists    *Lists
	}{
		"10,000 items change and move": {many(10_000, "a", false), many(10_000, "b", true), lists},
		"10,000 items come":            {many(0, "a", false), many(10_000, "b", true), lists},
		"10,000 deep":                  {deep(10_000, "a"), deep(10_000, "b"), deepLists},
		"10,000 lists in lists":        {inLists(10_000, "a"), inLists(10_000, "b"), lists},
		"1,000 long names":             {named("a"), named("b"), lists},
		"nothing and all":              {nil, many(10_000, "b", true), lists},
	} {
		begin := time.Now()
		touched, _ := Compare(row.old, row.new, row.lists, 100)
		bytes := 0
		for _, one := range touched {
			bytes += len(one.String())
		}
		if len(touched) > 100 || bytes > 200*maxName {
			t.Errorf("%s: %d touched, %d bytes", name, len(touched), bytes)
		}
		aligned := Align(row.old, row.new, row.lists).(map[string]any)
		if touched, more := Compare(row.old, aligned, row.lists, 1); len(touched)+more != 0 && touched[0].What != Moved {
			t.Errorf("%s: aligned is another object: %v", name, touched)
		}
		if touched, more := Compare(row.old, Revert(row.new, row.old, row.new, row.lists), row.lists, 1); len(touched)+more != 0 {
			t.Errorf("%s: reverted, %d differ: %v", name, more+1, touched)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}
