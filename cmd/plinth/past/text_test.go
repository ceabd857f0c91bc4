package past

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// compareTexts compares two objects of YAML.
func compareTexts(t *testing.T, view View, old, new string) string {
	t.Helper()
	all := versionsOf(t, old, new)
	lines, err := view.CompareVersions(all[0], all[1])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func TestCompareItems(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, old, new, want string }{
		{"the same", ports + "l: [{port: 53, protocol: UDP}]", ports + "l: [{port: 53, protocol: UDP}]", ""},
		{"items exchange places, and one changes", ports + "l: [{port: 53, protocol: UDP, v: a}, {port: 53, protocol: TCP, v: b}]",
			ports + "l: [{port: 53, protocol: TCP, v: b}, {port: 53, protocol: UDP, v: c}]", `l[port=53,protocol="TCP"]: moved
l[port=53,protocol="UDP"].v: "a" → "c"
@@ -6,5 +6,5 @@
   v: b
 - port: 53
   protocol: UDP
-  v: a
+  v: c
 metadata: {}`},
		{"items exchange places", ports + "set: [a, b]", ports + "set: [b, a]", `set[="b"]: moved`},
		{"without managers", "l: [{port: 1}, {port: 2}]", "l: [{port: 2}, {port: 1}]", "@@ -1,6 +1,6 @@\n apiVersion: v1\n kind: K\n l:\n-- port: 1\n - port: 2\n+- port: 1\n metadata: {}"},
		{"a field elsewhere", ports + "a: 1", ports + "a: 2", "@@ -1,4 +1,4 @@\n-a: 1\n+a: 2\n apiVersion: v1\n kind: K\n metadata: {}"},
	} {
		if diff := cmp.Diff(row.want, compareTexts(t, View{}, row.old, row.new)); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
	}
}

// TestCompareItemsLarge bounds what is said, and the work.
func TestCompareItemsLarge(t *testing.T) {
	t.Parallel()
	list := func(value string) string {
		var b strings.Builder
		b.WriteString(ports + "l:\n")
		for i := range 10_000 {
			fmt.Fprintf(&b, "- {port: %d, protocol: TCP, v: %s}\n", i, value)
		}
		return b.String()
	}
	all := versionsOf(t, list("a"), list("b"))
	begin := time.Now()
	lines, err := View{}.CompareVersions(all[0], all[1])
	if err != nil || lines[19] != `l[port=19,protocol="TCP"].v: "a" → "b"` || lines[20] != "and 9980 more fields of items" || !strings.HasPrefix(lines[21], "@@") {
		t.Errorf("%v: %q", err, lines[:22])
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestLogOfItems has the changes of objects of built-in and custom kinds say in which items they were.
func TestLogOfItems(t *testing.T) {
	t.Parallel()
	f := start(t)
	service, deployment, custom := f.createKeyed(f.c)
	for _, row := range []struct {
		target Target
		change func(*unstructured.Unstructured)
		want   []string
	}{
		{service, edit(exchange("name", "tcp2"), "spec", "ports"), []string{
			`spec.ports[port=53,protocol="TCP"]: moved`, `spec.ports[port=53,protocol="TCP"].name: "tcp" → "tcp2"`}},
		{deployment, inContainer("env", exchange("value", "three")), []string{
			`spec.template.spec.containers[name="app"].env[name="B"]: moved`,
			`spec.template.spec.containers[name="app"].env[name="B"].value: "two" → "three"`}},
		{custom, edit(exchange("name", "carla"), "ships"), []string{
			`ships[hull=9]: moved`, `ships[hull=9].name: "bella" → "carla"`}},
		{custom, edit(exchange("status", "False"), "status", "conditions"), []string{
			`status.conditions[type="Afloat"]: moved`, `status.conditions[type="Afloat"].status: "True" → "False"`}},
	} {
		f.change(f.c, row.target, row.change)
		for entry, err := range f.c.History.WithDiffs(f.Context(), f.c.History.Changes(f.Context(), Query{Limit: 1}.ToObject(row.target)), View{}) {
			f.must(err)
			first := slices.IndexFunc(entry.Diff, func(line string) bool { return strings.HasPrefix(line, "@@") })
			if first < 0 || !slices.Equal(entry.Diff[:first], row.want) {
				t.Errorf("%s: %q, want %q", row.target, entry.Diff, row.want)
			}
			changed := 0
			for _, line := range entry.Diff[max(first, 0):] {
				if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
					changed++
				}
			}
			if changed != 2 {
				t.Errorf("%s: %d lines of the object differ:\n%s", row.target, changed, strings.Join(entry.Diff, "\n"))
			}
		}
	}
}
