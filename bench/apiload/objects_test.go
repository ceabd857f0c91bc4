package apiload

import "testing"

func TestFields(t *testing.T) {
	object := ConfigMap("a", 7, 0)
	SetField(object, "n", "000000000042")
	if got := IntField(object, "n"); got != 42 {
		t.Errorf("n is %d", got)
	}
	for object, want := range map[string]int64{`{"sent":"0012"}`: 12, `{}`: 0, `{"sent":"12`: 0, `{"sent":"x"}`: 0} {
		if got := IntField([]byte(object), "sent"); got != want {
			t.Errorf("%s: %d", object, got)
		}
	}
}
