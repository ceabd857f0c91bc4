package fieldsets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRevert(t *testing.T) {
	for _, row := range []struct{ name, before, after, current, want string }{
		{"fields that the change touched", `{a: 1, b: {c: 1, d: 1}}`, `{a: 2, b: {c: 2, d: 1}}`, `{a: 2, b: {c: 2, d: 5}, e: 5}`, `{a: 1, b: {c: 1, d: 5}, e: 5}`},
		{"whatever they have now", `{a: 1}`, `{a: 2}`, `{a: 3}`, `{a: 1}`},
		{"also if they are gone", `{a: 1}`, `{a: 2}`, `{b: 1}`, `{a: 1, b: 1}`},
		{"not in a map that is gone", `{m: {a: 1, b: 1}}`, `{m: {a: 2, b: 1}}`, `{x: 1}`, `{x: 1}`},
		{"not in what is no map any more", `{m: {a: 1}}`, `{m: {a: 2}}`, `{m: x}`, `{m: x}`},
		{"what was added goes", `{}`, `{a: 1, m: {b: 1, c: {d: 1}}}`, `{a: 1, m: {b: 1, c: {d: 1}}}`, `{}`},
		{"without what others put into it", `{}`, `{m: {b: 1, c: {d: 1}}}`, `{m: {b: 1, c: {d: 1, e: 2}}}`, `{m: {c: {e: 2}}}`},
		{"what is gone already stays so", `{}`, `{m: {b: 1}}`, `{}`, `{}`},
		{"what was removed comes back", `{a: 1, m: {b: 1}}`, `{}`, `{x: 1}`, `{a: 1, m: {b: 1}, x: 1}`},
		{"into what others made", `{m: {b: 1}}`, `{}`, `{m: {c: 1}}`, `{m: {b: 1, c: 1}}`},
		{"another type", `{a: {b: 1}}`, `{a: 1}`, `{a: 2}`, `{a: {b: 1}}`},
		{"null", `{a: null}`, `{a: 1}`, `{a: 1}`, `{a: null}`},
		{"an empty map stays", `{m: {}}`, `{m: {a: 1}}`, `{m: {a: 1}}`, `{m: {}}`},

		{"a list that nobody knows", `{l: [1, 2]}`, `{l: [1, 3]}`, `{l: [0, 1, 3]}`, `{l: [1, 2]}`},
		{"and that the change has not touched", `{l: [1], a: 1}`, `{l: [1], a: 2}`, `{l: [2], a: 2}`, `{l: [2], a: 1}`},

		{"a field of an item, wherever that is", `{ports: [{port: 1, name: a}, {port: 2, name: b}]}`, `{ports: [{port: 1, name: a}, {port: 2, name: x}]}`,
			`{ports: [{port: 3}, {port: 2, name: x, more: 1}, {port: 1, name: y}]}`, `{ports: [{port: 3}, {port: 2, name: b, more: 1}, {port: 1, name: y}]}`},
		{"not in an item that is gone", `{ports: [{port: 1, name: a}]}`, `{ports: [{port: 1, name: x}]}`, `{ports: [{port: 3}]}`, `{ports: [{port: 3}]}`},
		{"an item that was added goes, with all that is in it", `{ports: [{port: 1}]}`, `{ports: [{port: 1}, {port: 2}]}`, `{ports: [{port: 2, name: x}, {port: 3}, {port: 1}]}`, `{ports: [{port: 3}, {port: 1}]}`},
		{"an item that was removed comes back behind the one before", `{ports: [{port: 1}, {port: 2}, {port: 4}, {port: 5}]}`, `{ports: [{port: 1}, {port: 5}]}`,
			`{ports: [{port: 5}, {port: 1}, {port: 3}]}`, `{ports: [{port: 5}, {port: 1}, {port: 2}, {port: 4}, {port: 3}]}`},
		{"the first one before the others", `{set: [a, b, c]}`, `{set: [c]}`, `{set: [x, c, z]}`, `{set: [x, a, b, c, z]}`},
		{"where all others are gone", `{set: [a, b]}`, `{set: [b]}`, `{set: [x]}`, `{set: [x, a]}`},
		{"one that somebody has added again keeps its place", `{ports: [{port: 1, name: a}, {port: 2}]}`, `{ports: [{port: 2}]}`, `{ports: [{port: 2}, {port: 1, more: 1}]}`, `{ports: [{port: 2}, {port: 1, name: a, more: 1}]}`},
		{"the order", `{set: [a, b, c]}`, `{set: [c, b, a]}`, `{set: [x, c, z, b, a]}`, `{set: [x, a, z, b, c]}`},
		{"not the order that somebody else has made", `{ports: [{port: 1, name: a}, {port: 2}]}`, `{ports: [{port: 1, name: b}, {port: 2}]}`, `{ports: [{port: 2}, {port: 1, name: b}]}`, `{ports: [{port: 2}, {port: 1, name: a}]}`},
		{"a list that was added", `{}`, `{set: [a]}`, `{set: [a]}`, `{}`},
		{"a list that was added, with items of others", `{}`, `{set: [a]}`, `{set: [b, a]}`, `{set: [b]}`},
		{"a list that was removed", `{set: [a]}`, `{}`, `{set: [b]}`, `{set: [b, a]}`},
		{"a list that was removed, and is not there", `{set: [a]}`, `{}`, `{}`, `{set: [a]}`},
		{"a list that is gone", `{set: [a]}`, `{set: [a, b]}`, `{}`, `{}`},
		{"items in items", `{ports: [{port: 1, env: [{name: a, value: x}, {name: b}]}]}`, `{ports: [{port: 1, env: [{name: a, value: y}]}]}`,
			`{ports: [{port: 2}, {port: 1, env: [{name: c}, {name: a, value: y}]}]}`, `{ports: [{port: 2}, {port: 1, env: [{name: c}, {name: a, value: x}, {name: b}]}]}`},
		{"two of one name now", `{set: [a]}`, `{set: [b]}`, `{set: [b, b]}`, `{set: [a]}`},
	} {
		before, after, current := parse(t, row.before), parse(t, row.after), parse(t, row.current)
		got := Revert(current, before, after, known(t))
		if diff := cmp.Diff(parse(t, row.want), got); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
		if diff := cmp.Diff(parse(t, row.current)["ports"], current["ports"]); diff != "" {
			t.Errorf("%s has changed the object: %s", row.name, diff)
		}
		if diff := cmp.Diff(before, Revert(after, before, after, known(t))); diff != "" {
			t.Errorf("%s: the change alone: %s", row.name, diff)
		}
		if diff := cmp.Diff(current, Revert(current, after, after, known(t))); diff != "" {
			t.Errorf("%s: no change: %s", row.name, diff)
		}
	}
}
