package figures

import "testing"

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.1234: "0.123", 3.14159: "3.14", 55.55: "55.5", 123.4: "123",
		1234: "1,234", 1234567.8: "1,234,568", -1234567: "-1,234,567", 1e6: "1,000,000",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) is %q, not %q", v, got, want)
		}
	}
}
