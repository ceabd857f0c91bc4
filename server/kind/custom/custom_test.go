package custom

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
)

// definition has two versions; the second says more than the first.
const definition = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"toys.example.com","generation":1},
	"spec":{"group":"example.com","scope":"Namespaced","conversion":{"strategy":"None"},
		"names":{"plural":"toys","singular":"toy","kind":"Toy","listKind":"ToyList"},
		"versions":[
			{"name":"v1alpha1","served":true,"storage":false,"deprecated":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}}}}}}},
			{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","default":2}}}}}}},
			{"name":"v2","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]},
	"status":{"acceptedNames":{"plural":"toys","singular":"toy","kind":"Toy","listKind":"ToyList"},"conditions":[],"storedVersions":["v1"]}}`

func toys(t *testing.T, change func(*Definition)) []*kind.Kind {
	t.Helper()
	d, err := Decode([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(d)
	}
	converters, err := NewConverters(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(converters.Close)
	kinds, _, err := Kinds(d, func() ([]byte, error) { return []byte(definition), nil }, converters, make(chan struct{}))
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func TestKinds(t *testing.T) {
	var got []string
	for _, k := range toys(t, nil) {
		v := k.Versions[0]
		got = append(got, fmt.Sprintf("%s %s status=%t stored=%s %s", k.GVK(v.Name), k.Prefix(), k.Subresources["status"] != nil, k.Stored.Version, v.Deprecated))
	}
	want := []string{
		"example.com/v1, Kind=Toy /registry/example.com/toys/ status=true stored=v1 ",
		"example.com/v1alpha1, Kind=Toy /registry/example.com/toys/ status=false stored=v1 example.com/v1alpha1 Toy is deprecated; use example.com/v1 Toy",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Decode leaves out the schemas and nothing else.
func TestDecode(t *testing.T) {
	d, err := Decode([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Source(func() ([]byte, error) { return []byte(definition), nil }).whole()
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole.Spec.Versions {
		if whole.Spec.Versions[i].Schema == nil {
			t.Errorf("version %d has no schema", i)
		}
		whole.Spec.Versions[i].Schema = nil
	}
	if diff := cmp.Diff(whole, d.CRD); diff != "" {
		t.Error(diff)
	}
}

// An object goes to the log in the storage version and comes back in each.
func TestStoreAndLoad(t *testing.T) {
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

func TestStoreLayout(t *testing.T) {
	for _, k := range toys(t, nil) {
		obj, _, err := k.Codec.Decode([]byte(`{"apiVersion":"example.com/`+k.Versions[0].Name+`","kind":"Toy","zeta":1,
			"metadata":{"name":"x","resourceVersion":"7","selfLink":"/x","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"}},"spec":{"a":"<&>"}}`), "application/json", schema.GroupVersionKind{}, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Codec.Store(obj)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"kind":"Toy","apiVersion":"example.com/v1","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,"labels":{"a":"b"},"name":"x"},"spec":{"a":"\u003c\u0026\u003e","b":2}}`
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s: %s", k.Versions[0].Name, diff)
		}
	}
}

// What may be served as it is stored.
func TestStale(t *testing.T) {
	const minute = 60_000
	v1 := []byte(`{"kind":"Toy","apiVersion":"example.com/v1","metadata":{}}`)
	for _, row := range []struct {
		name         string
		since, at    int64 // of the schema
		json         []byte
		revision, on int64 // of the object
		want         bool
	}{
		{"the first schema", 0, 0, v1, 5, 1000, false},
		{"before a change", 10, 1000, v1, 9, 999, true},
		{"a request that may have begun before the change", 10, 1000, v1, 11, 1000 + minute, true},
		{"well after the change", 10, 1000, v1, 11, 1001 + minute, false},
		{"another version than the storage version", 0, 0, []byte(`{"kind":"Toy","apiVersion":"example.com/v1alpha1","metadata":{}}`), 5, 1000, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := toys(t, func(d *Definition) { d.Since, d.At = row.since, row.at })[0]
			if got := k.Stale(row.json, row.revision, row.on); got != row.want {
				t.Errorf("stale: %t", got)
			}
		})
	}
}
