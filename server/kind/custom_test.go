package kind

import "testing"

// TestBuiltinKindIsNeverGone: a built-in Kind has no end, nothing stale and no conversion.
func TestBuiltinKindIsNeverGone(t *testing.T) {
	var k Kind
	if k.Gone() != nil || k.Stale([]byte("{}"), 1, 1) || k.Conversion() != nil {
		t.Error("a built-in Kind has what only custom resources have")
	}
}
