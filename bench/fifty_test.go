package bench

import (
	"encoding/json"
	"testing"
)

// TestFifty checks that the objects that are compared have the same size and number of fields.
func TestFifty(t *testing.T) {
	custom, builtin := fiftyObject("object-0000001"), fiftyConfigMap("object-0000001")
	var a struct{ Spec map[string]any }
	var b struct{ Data map[string]any }
	if err := json.Unmarshal(custom, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(builtin, &b); err != nil {
		t.Fatal(err)
	}
	if len(custom) != len(builtin) || len(a.Spec) != 50 || len(b.Data) != 50 {
		t.Errorf("%d bytes with %d fields, %d bytes with %d fields", len(custom), len(a.Spec), len(builtin), len(b.Data))
	}
}
