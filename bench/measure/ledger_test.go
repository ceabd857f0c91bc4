package measure

import "testing"

func TestMarks(t *testing.T) {
	var m marks
	for _, n := range []int{0, 63, 64, 1000} {
		if m.has(n) || !m.add(n) || m.add(n) || !m.has(n) || m.has(n+1) {
			t.Errorf("%d", n)
		}
	}
}
