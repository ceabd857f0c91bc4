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
