package fieldsets

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// world makes random objects of the lists that known knows. What one writer writes has his name in it, so that two
// writers never touch the same field or item.
type world struct{ *rand.Rand }

func (w *world) object() map[string]any {
	return map[string]any{"m": map[string]any{"shared": "x"}, "ports": []any{w.port(0, "shared"), w.port(1, "shared")}, "set": []any{"a", "b"}}
}

func (w *world) port(n int, writer string) map[string]any {
	return map[string]any{"port": int64(n), "protocol": writer, writer: "x"}
}

// change changes some things as a writer.
func (w *world) change(object map[string]any, writer string) map[string]any {
	out := copied(object).(map[string]any)
	for range 1 + w.IntN(4) {
		w.changeMap(out["m"].(map[string]any), writer)
		switch w.IntN(3) {
		case 0:
			out["ports"] = w.changeItems(out["ports"].([]any), writer)
		case 1:
			out["set"] = w.changeSet(out["set"].([]any), writer)
		}
	}
	return out
}

func (w *world) changeMap(m map[string]any, writer string) {
	key := fmt.Sprint(writer, w.IntN(3))
	switch w.IntN(4) {
	case 0:
		delete(m, key)
	case 1:
		m[key] = map[string]any{writer: w.IntN(3)}
	case 2:
		m[key] = w.IntN(5)
	}
}

// changeItems adds and removes the writer's own items, and changes his own fields of shared ones.
func (w *world) changeItems(items []any, writer string) []any {
	i := w.IntN(len(items))
	item := items[i].(map[string]any)
	switch protocol := item["protocol"]; {
	case protocol == "shared":
		w.changeMap(item, writer)
	case protocol == writer:
		return append(items[:i:i], items[i+1:]...)
	}
	added := w.port(w.IntN(1000), writer)
	for _, there := range items {
		if there.(map[string]any)["port"] == added["port"] {
			return items
		}
	}
	return append(items[:i:i], append([]any{added}, items[i:]...)...)
}

func (w *world) changeSet(items []any, writer string) []any {
	i, added := w.IntN(len(items)+1), fmt.Sprint(writer, w.IntN(4))
	for at, there := range items {
		if there == added {
			return append(items[:at:at], items[at+1:]...)
		}
	}
	return append(items[:i:i], append([]any{added}, items[i:]...)...)
}

func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			out[key] = copied(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = copied(value)
		}
		return out
	}
	return v
}

// TestRevertModel has ann change an object and bob after her: without her change the object is what bob alone would have
// made of it, in any order of items, and without both it is what it was, to the last item.
func TestRevertModel(t *testing.T) {
	lists := known(t)
	for seed := range uint64(500) {
		w := &world{rand.New(rand.NewPCG(seed, 1))}
		before := w.object()
		after := w.change(before, "ann")
		current := w.change(after, "bob")
		withoutAnn := Revert(current, before, after, lists)
		got := Revert(withoutAnn, after, current, lists)
		if diff := cmp.Diff(before, got); diff != "" {
			t.Fatalf("seed %d: without both: %s", seed, diff)
		}
		// What is between before and what is left is bob's alone, and all of it.
		left, more := Compare(before, withoutAnn, lists, 1000)
		bobs, moreOfBob := Compare(after, current, lists, 1000)
		if diff := cmp.Diff(fieldsOf(bobs), fieldsOf(left)); diff != "" || more+moreOfBob != 0 {
			t.Fatalf("seed %d: without ann: %s", seed, diff)
		}
	}
}

// fieldsOf returns what was done to which field.
func fieldsOf(touched []Touched) map[string]string {
	out := map[string]string{}
	for _, one := range touched {
		out[one.Field+" "+string(one.What)] = one.String()
	}
	return out
}
