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
		s := Series{rounds: slices.Clone(c.values)}
		if got := s.Median(); got != c.want {
			t.Errorf("median of %v is %v, not %v", c.values, c.want, got)
		}
		if !slices.Equal(c.values, s.rounds) {
			t.Errorf("median reordered the rounds")
		}
	}
}

func TestRatio(t *testing.T) {
	var a, b Series
	for i, rounds := range [][2]float64{{1, 2}, {6, 3}, {8, 8}, {5, 0}} {
		a.Add(rounds[0], time.Duration(i)*time.Millisecond)
		if i < 3 {
			b.Add(rounds[1])
		}
	}
	if got := a.Ratio(&b); got != 1 {
		t.Errorf("the ratio is %v", got)
	}
	if l := a.Latency(); l.Max != 3 || b.Latency() != nil {
		t.Errorf("latencies %v and %v", l, b.Latency())
	}
}
