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

// Median returns the median of values, 0 if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Ratios returns the ratios of neighbouring rounds.
func Ratios(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] / b[i]
	}
	return out
}

// MiB returns mebibytes.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }
