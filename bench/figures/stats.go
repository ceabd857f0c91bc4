package figures

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Latency is how long the operations of one measurement took, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// LatencyOf returns the percentiles of samples, which it sorts; nil if there are none.
func LatencyOf(samples []time.Duration) *Latency {
	if len(samples) == 0 {
		return nil
	}
	slices.Sort(samples)
	return &Latency{
		P50: Millis(percentile(samples, 50)),
		P90: Millis(percentile(samples, 90)),
		P99: Millis(percentile(samples, 99)),
		Max: Millis(samples[len(samples)-1]),
	}
}

// String is the 50th and the 99th percentile; empty if there are none.
func (l *Latency) String() string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf("%s / %s ms", Number(l.P50), Number(l.P99))
}

// percentile is the nearest rank: the smallest sample that p percent do not exceed.
func percentile(sorted []time.Duration, p float64) time.Duration {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Millis returns milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Series is what was measured in rounds.
type Series struct {
	rounds  []float64
	samples []time.Duration
}

// Add adds a round, and how long its operations took.
func (s *Series) Add(value float64, samples ...time.Duration) {
	s.rounds = append(s.rounds, value)
	s.samples = append(s.samples, samples...)
}

// Median is that of the rounds, 0 if there are none.
func (s *Series) Median() float64 {
	if len(s.rounds) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(s.rounds))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Ratio is the median of the ratios to neighbouring rounds of another series.
func (s *Series) Ratio(to *Series) float64 {
	var ratios Series
	for i := range min(len(s.rounds), len(to.rounds)) {
		ratios.Add(s.rounds[i] / to.rounds[i])
	}
	return ratios.Median()
}

// Latency is that of all operations.
func (s *Series) Latency() *Latency { return LatencyOf(s.samples) }

// MiB returns mebibytes.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }
