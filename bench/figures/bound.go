package figures

import "strconv"

// Bound is what a figure has to reach.
type Bound struct {
	AtMost bool    `json:"at_most"` // else at least
	Bound  float64 `json:"bound"`
	Met    *bool   `json:"met,omitempty"` // nil: not judged, as in a quick run
}

// AtLeast returns a lower bound.
func AtLeast(bound float64) *Bound { return &Bound{Bound: bound} }

// AtMost returns an upper bound.
func AtMost(bound float64) *Bound { return &Bound{AtMost: true, Bound: bound} }

// Judged returns the bound with the verdict on a value; in a quick run, without one. There may be no bound.
func (b *Bound) Judged(v float64, quick bool) *Bound {
	if b == nil || quick {
		return b
	}
	met := v >= b.Bound
	if b.AtMost {
		met = v <= b.Bound
	}
	return &Bound{b.AtMost, b.Bound, &met}
}

// Headroom is how many times better a value is than the bound. Below 1 it is not reached.
func (b *Bound) Headroom(v float64) float64 {
	if !b.AtMost {
		return v / b.Bound
	}
	// The small number keeps the quotient finite if the bound is 0 events.
	return (b.Bound + 1e-9) / (v + 1e-9)
}

// String is the bound, such as ≥ 0.6.
func (b *Bound) String() string {
	sign := "≥ "
	if b.AtMost {
		sign = "≤ "
	}
	return sign + strconv.FormatFloat(b.Bound, 'f', -1, 64)
}

// Verdict says whether the bound is met.
func (b *Bound) Verdict() string {
	switch {
	case b.Met == nil:
		return "not judged"
	case *b.Met:
		return "met"
	}
	return "MISSED"
}

// Hue is the colour of the verdict.
func (b *Bound) Hue() string {
	switch {
	case b.Met == nil:
		return Muted
	case *b.Met:
		return Good
	}
	return Bad
}
