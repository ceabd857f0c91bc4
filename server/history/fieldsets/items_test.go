package fieldsets

import (
	"fmt"
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	item := func(pairs ...any) any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	ports := &Keys{Fields: []string{"port", "protocol"}}
	for _, row := range []struct {
		name  string
		keys  *Keys
		items []any
		ok    bool
	}{
		{"none", ports, nil, true},
		{"different", ports, []any{item("port", int64(1), "protocol", "TCP"), item("port", int64(1), "protocol", "UDP")}, true},
		{"the same", ports, []any{item("port", int64(1)), item("port", int64(1), "name", "b")}, false},
		{"one has the default", ports, []any{item("port", int64(1)), item("port", int64(1), "protocol", "TCP")}, true},
		{"a number and a text", ports, []any{item("port", int64(1)), item("port", "1")}, true},
		{"no map", ports, []any{"x"}, false},
		{"a key that is a map", ports, []any{item("port", item())}, false},
		{"a set", &Keys{}, []any{"a", "b", int64(1)}, true},
		{"no set", &Keys{}, []any{"a", "a"}, false},
		{"not known", nil, nil, false},
	} {
		names, ok := row.keys.names(row.items)
		if ok != row.ok || ok && len(names) != len(row.items) {
			t.Errorf("%s: %q, %v", row.name, names, ok)
		}
	}
}

func TestFollow(t *testing.T) {
	ports := known(t).Field("ports")
	list := func(numbers ...int) (items []any) {
		for _, n := range numbers {
			items = append(items, map[string]any{"port": int64(n), "protocol": "TCP"})
		}
		return items
	}
	if from, ok := ports.Follow(list(1, 2, 3), list(3, 4, 1)); !ok || !slices.Equal(from, []int{2, -1, 0}) {
		t.Errorf("%v, %v", from, ok)
	}
	if from, ok := ports.Follow(list(1, 1), list(1)); ok {
		t.Errorf("two of one name are followed: %v", from)
	}
	if from, ok := ports.Items().Follow(list(1), list(1)); ok {
		t.Errorf("a list that nobody knows is followed: %v", from)
	}
}

func TestMoved(t *testing.T) {
	for _, row := range []struct {
		from []int
		want string
	}{
		{nil, ""},
		{[]int{0, 1, 2}, "..."},
		{[]int{1, 0}, "m."},
		{[]int{-1, 0, -1, 1}, "...."},
		{[]int{3, 0, 1, 2}, "m..."},
		{[]int{1, 2, 3, 0}, "...m"},
		{[]int{0, 2, 5}, "..."}, // some were removed
		{[]int{4, 3, 2, 1, 0}, "mmmm."},
		{[]int{-1, -1}, ".."},
	} {
		got := ""
		for _, m := range moved(row.from) {
			got += map[bool]string{true: "m", false: "."}[m]
		}
		if got != row.want {
			t.Errorf("%v: %s, want %s", row.from, got, row.want)
		}
	}
	large := make([]int, 100_000)
	for i := range large {
		large[i] = (i + 1) % len(large)
	}
	if got := moved(large); !got[len(got)-1] || slices.Contains(got[:len(got)-1], true) {
		t.Error("more has moved than the item that was the first")
	}
}

func TestElement(t *testing.T) {
	for want, row := range map[string]struct {
		keys *Keys
		item any
	}{
		`[port=53,protocol="UDP"]`: {&Keys{[]string{"port", "protocol"}}, map[string]any{"port": int64(53), "protocol": "UDP"}},
		`[port=53,protocol=null]`:  {&Keys{[]string{"port", "protocol"}}, map[string]any{"port": int64(53)}},
		`[="x"]`:                   {&Keys{}, "x"},
		`[=true]`:                  {&Keys{}, true},
	} {
		if got := fmt.Sprint(row.keys.element(row.item)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
