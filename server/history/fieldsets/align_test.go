package fieldsets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAlign(t *testing.T) {
	for _, row := range []struct{ name, old, new, want string }{
		{"a list that nobody knows stays", `{l: [1, 2]}`, `{l: [2, 1]}`, `{l: [1, 2]}`},
		{"a set", `{set: [a, b, c, d, e]}`, `{set: [d, x, b]}`, `{set: [a, d, e, b, c]}`},
		{"nothing is left", `{set: [a, b]}`, `{set: [c]}`, `{set: [a, b]}`},
		{"another type", `{set: [a, b]}`, `{set: {}}`, `{set: [a, b]}`},
		{"in items", `{ports: [{port: 1, env: [{name: a}, {name: b}]}, {port: 2}]}`,
			`{ports: [{port: 2}, {port: 1, env: [{name: b, value: x}, {name: a}]}], set: []}`, `{ports: [{port: 2}, {port: 1, env: [{name: b}, {name: a}]}]}`},
	} {
		old := parse(t, row.old)
		got := Align(old, parse(t, row.new), known(t))
		if diff := cmp.Diff(parse(t, row.want), got); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
		if diff := cmp.Diff(parse(t, row.old), old); diff != "" {
			t.Errorf("%s has changed the object: %s", row.name, diff)
		}
	}
}
