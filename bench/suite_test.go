package bench

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestSuite wants the definitions to be what they are said to be: of real size, always the
// same, and no two alike.
func TestSuite(t *testing.T) {
	sum, seen := 0, map[string]bool{}
	for i := range full.definitions {
		d := newDefinition("suite", i)
		if !bytes.Equal(d.body, newDefinition("suite", i).body) {
			t.Fatalf("number %d is another each time", i)
		}
		if len(d.body) < 8<<10 || len(d.body) > 64<<10 {
			t.Errorf("number %d has %d bytes", i, len(d.body))
		}
		if seen[d.plural] {
			t.Errorf("%s comes twice", d.plural)
		}
		seen[d.plural] = true
		sum += len(d.body)
	}
	if mean := sum / full.definitions; mean < 15<<10 || mean > 40<<10 {
		t.Errorf("a definition has %d bytes in the mean", mean)
	} else {
		t.Logf("a definition has %d bytes in the mean", mean)
	}
}

// TestFifty wants what is compared to be alike.
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
