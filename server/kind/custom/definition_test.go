package custom

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecode: Decode leaves out the schemas and nothing else.
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

// TestStale checks which stored objects may be served as they are.
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
