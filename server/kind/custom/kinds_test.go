package custom

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/server/kind"
)

// definition has two served versions; the second has more fields than the first.
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
	converters, err := NewConverters(nil, nil)
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
