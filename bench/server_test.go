package bench

import "testing"

func TestFields(t *testing.T) {
	if n := len(valueOf(123456)); n != 1024 {
		t.Errorf("a value has %d bytes", n)
	}
	object := configMap("a", 7)
	setField(object, "n", "000000000042")
	if got := intField(object, "n"); got != 42 {
		t.Errorf("n is %d", got)
	}
	for object, want := range map[string]int64{`{"sent":"0012"}`: 12, `{}`: 0, `{"sent":"12`: 0, `{"sent":"x"}`: 0} {
		if got := intField([]byte(object), "sent"); got != want {
			t.Errorf("%s: %d", object, got)
		}
	}
}
