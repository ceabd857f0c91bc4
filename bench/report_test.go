package bench

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTargets(t *testing.T) {
	var d Database
	d.add(Figure{What: "a", Value: 50, Against: 100, Floor: "floor", Ratio: 0.5, Target: atLeast(0.6)})
	d.add(Figure{What: "b", Value: 50, Unit: "MiB", Target: atMost(120)})
	d.add(Figure{What: "c", Value: 1, Unit: "events", Target: atMost(0)})
	d.add(Figure{What: "d", Value: 0, Unit: "events", Target: atMost(0)})
	var met []bool
	for _, f := range d.Figures {
		met = append(met, *f.Target.Met)
		if (f.headroom() >= 1) != *f.Target.Met || math.IsInf(f.headroom(), 0) || math.IsNaN(f.headroom()) {
			t.Errorf("%s: headroom %v, met %v", f.What, f.headroom(), *f.Target.Met)
		}
	}
	if !slices.Equal(met, []bool{false, true, false, true}) {
		t.Errorf("met: %v", met)
	}
	r := Report{Databases: []*Database{{Name: "x", Figures: d.Figures}}}
	if diff := cmp.Diff([]string{"x: a", "x: c"}, r.Missed()); diff != "" {
		t.Error(diff)
	}
}
