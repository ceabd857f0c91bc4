package custom

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestEncodeAndLoad: an object is stored in the storage version and read in each version.
func TestEncodeAndLoad(t *testing.T) {
	for _, row := range []struct{ name, stored, v1, v1alpha1 string }{
		{"defaults are the storage version's",
			`{"kind":"Toy","apiVersion":"example.com/v1","metadata":{"name":"x"},"spec":{"a":"1","b":2}}`,
			`{"a":"1","b":2}`, `{"a":"1"}`},
		{"what is unknown by now is pruned, what is new is filled in",
			`{"kind":"Toy","apiVersion":"example.com/v1","metadata":{"name":"x","resourceVersion":"5"},"spec":{"a":"1","gone":true}}`,
			`{"a":"1","b":2}`, `{"a":"1"}`},
		{"another stored version is converted after its own defaults",
			`{"kind":"Toy","apiVersion":"example.com/v1alpha1","metadata":{"name":"x"},"spec":{"a":"1","b":7}}`,
			`{"a":"1"}`, `{"a":"1"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, k := range toys(t, nil) {
				obj, err := k.Codec.Load([]byte(row.stored))
				if err != nil {
					t.Fatal(err)
				}
				u := obj.(*unstructured.Unstructured)
				want := map[string]string{"v1": row.v1, "v1alpha1": row.v1alpha1}[k.Versions[0].Name]
				got, err := (&unstructured.Unstructured{Object: map[string]any{"kind": "x", "spec": u.Object["spec"]}}).MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if want = `{"kind":"x","spec":` + want + "}\n"; string(got) != want || u.GroupVersionKind() != k.GVK(k.Versions[0].Name) {
					t.Errorf("%s: got %s %s, want %s", k.Versions[0].Name, u.GroupVersionKind(), got, want)
				}
			}
		})
	}
}
