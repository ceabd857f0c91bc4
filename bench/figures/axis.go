package figures

import (
	"math"
	"strconv"
)

// logAxis maps values to pixels so that equal factors are equal lengths.
type logAxis struct{ low, high, from, to float64 }

// newLogAxis spans whole powers of ten around all values above 0.
func newLogAxis(values []float64, from, to float64) logAxis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		low, high = 1, 10
	}
	a := logAxis{math.Floor(math.Log10(low)), math.Ceil(math.Log10(high)), from, to}
	if a.low == a.high {
		a.high++
	}
	return a
}

// At returns the pixel of v.
func (a logAxis) At(v float64) float64 {
	if v <= 0 {
		return a.from
	}
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

// Ticks returns 1, 2 and 5 of each power of ten, or only the powers if there are many.
func (a logAxis) Ticks() (ticks []float64) {
	steps := []float64{1, 2, 5}
	if a.high-a.low > 3 {
		steps = steps[:1]
	}
	for p := a.low; p <= a.high; p++ {
		for _, step := range steps {
			if v := step * math.Pow(10, p); v <= math.Pow(10, a.high)*1.001 {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// Label writes the number beside a tick.
func (a logAxis) Label(tick float64) string {
	if tick >= 1 {
		return Number(math.Round(tick))
	}
	return strconv.FormatFloat(tick, 'g', 2, 64)
}
