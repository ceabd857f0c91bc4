package custom

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFieldsRead(t *testing.T) {
	for expression, want := range map[string]string{
		"":                                  "[] true",
		"true":                              "[] true",
		"self.a < self.b.c":                 "[a b] true",
		"has(self.a) && oldSelf.b == 1":     "[a b] true",
		"self.list.all(x, x.y in self.set)": "[list set] true",
		"self.x__dash__y == 1":              "[x-y] true",
		"self == oldSelf":                   "[] false",
		"self.a == 1 && size(self) > 0":     "[a] false",
		"self.list.all(self, self > 1)":     "[list] false",
		"self['a'] == 1":                    "[] false",
		"oldSelf.hasValue()":                "[] false",
		"self.?a.orValue(1) == 1":           "[] false",
		"self. ":                            "[] false",
	} {
		fields := map[string]bool{}
		known := fieldsRead(expression, fields)
		if got := fmt.Sprint(slices.Sorted(maps.Keys(fields)), known); got != want {
			t.Errorf("%q reads %s, not %s", expression, got, want)
		}
	}
}

// TestTopology finds the keys of lists in metadata and in a scale, which are of upstream's models.
func TestTopology(t *testing.T) {
	text := strings.Replace(definition, `{"status":{}}`, `{"scale":{"specReplicasPath":".spec.b","statusReplicasPath":".status.b"}}`, 1)
	types, err := newTopology(func() ([]byte, error) { return []byte(text), nil })
	if err != nil {
		t.Fatal(err)
	}
	owned := func(object map[string]any) string {
		v, err := types.ObjectToTyped(&unstructured.Unstructured{Object: object})
		if err != nil {
			t.Fatal(err)
		}
		set, err := v.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		return set.String()
	}
	toy := map[string]any{"kind": "Toy", "apiVersion": "example.com/v1", "metadata": map[string]any{
		"finalizers": []any{"example.com/f"}, "ownerReferences": []any{map[string]any{"uid": "u"}},
	}}
	if got := owned(toy); !strings.Contains(got, `.metadata.finalizers[="example.com/f"]`) || !strings.Contains(got, `.metadata.ownerReferences[uid="u"]`) {
		t.Errorf("the fields of a custom resource are\n%s", got)
	}
	if got := owned(map[string]any{"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": map[string]any{"replicas": int64(1)}}); !strings.Contains(got, ".spec.replicas") {
		t.Errorf("the fields of a scale are\n%s", got)
	}
}
