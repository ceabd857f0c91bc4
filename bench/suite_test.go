package bench

import (
	"bytes"
	"testing"
)

// TestSuite checks that the definitions have the size of real ones, are always the same, and differ
// from each other.
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
