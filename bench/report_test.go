package bench

import (
	"math"
	"slices"
	"testing"

	"github.com/plinth-io/plinth/bench/figures"
)

func TestTargets(t *testing.T) {
	var d Database
	d.add(Figure{What: "a", Value: 50, Against: 100, Floor: "floor", Ratio: 0.5, Target: figures.AtLeast(0.6)})
	d.add(Figure{What: "b", Value: 50, Unit: "MiB", Target: figures.AtMost(120)})
	d.add(Figure{What: "c", Value: 1, Unit: "events", Target: figures.AtMost(0)})
	d.add(Figure{What: "d", Value: 0, Unit: "events", Target: figures.AtMost(0)})
	var met []bool
	for _, f := range d.Figures {
		met = append(met, *f.Target.Met)
		if headroom := f.Target.Headroom(f.judged()); (headroom >= 1) != *f.Target.Met || math.IsInf(headroom, 0) || math.IsNaN(headroom) {
			t.Errorf("%s: headroom %v, met %v", f.What, headroom, *f.Target.Met)
		}
	}
	if !slices.Equal(met, []bool{false, true, false, true}) {
		t.Errorf("met: %v", met)
	}
}
