package bench

import "testing"

func TestValue(t *testing.T) {
	if n := len(valueOf(123456)); n != 1024 {
		t.Errorf("a value has %d bytes", n)
	}
}
