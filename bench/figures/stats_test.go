package figures

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	var samples []time.Duration
	for i := 100; i > 0; i-- {
		samples = append(samples, time.Duration(i)*time.Millisecond)
	}
	got := LatencyOf(samples)
	if diff := cmp.Diff(&Latency{P50: 50, P90: 90, P99: 99, Max: 100}, got); diff != "" {
		t.Error(diff)
	}
	if one := LatencyOf([]time.Duration{time.Second}); one.P50 != 1000 || one.P99 != 1000 {
		t.Errorf("of one sample: %+v", one)
	}
	if LatencyOf(nil) != nil {
		t.Error("latency without samples")
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		before := slices.Clone(c.values)
		if got := Median(c.values); got != c.want {
			t.Errorf("median of %v is %v, not %v", c.values, c.want, got)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("median reordered its argument")
		}
	}
	if got := Ratios([]float64{1, 6}, []float64{2, 3}); !slices.Equal(got, []float64{0.5, 2}) {
		t.Errorf("ratios are %v", got)
	}
}
