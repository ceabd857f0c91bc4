package figures

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
)

const (
	chartWidth, chartLeft, chartRight = 980.0, 340.0, 780.0
	chartTop                          = 104.0 // of the first heading
)

// Chart has a line for each figure, below headings.
type Chart struct {
	Title, Subtitle string
	Across          string // what the horizontal axis is
	Axis            Axis   // nil: a logarithmic one around all values
	One             string // what is written above the line at 1 of an axis of folds
	Legend          []Key
	Groups          []Group
}

// Axis maps values to pixels.
type Axis interface {
	At(v float64) float64
	Ticks() []float64
	Label(tick float64) string
}

// Key says what a colour is.
type Key struct{ Name, Hue string }

// Group is lines below a heading.
type Group struct {
	Heading, Beside string
	Marks           []Mark
}

// Mark is one line of a chart.
type Mark struct {
	Name   string
	Values []float64 // that the axis has to have
	Draw   func(s *SVG, a Axis, y float64)
	Text   string // right of what is drawn
	Hue    string // of the text; empty: that of ink
	Remark string // further right
}

// height is that of the heading and the lines.
func (g *Group) height() float64 { return 36 + 22*float64(len(g.Marks)) }

// Draw returns the drawing.
func (c *Chart) Draw() string {
	height, axis := chartTop+44, c.Axis
	var values []float64
	for _, g := range c.Groups {
		height += g.height()
		for _, m := range g.Marks {
			values = append(values, m.Values...)
		}
	}
	if axis == nil {
		axis = newLogAxis(values, chartLeft, chartRight)
	}
	s := newSVG(chartWidth, height, c.Title, c.Subtitle)
	bottom := height - 44
	for _, v := range axis.Ticks() {
		s.Line(axis.At(v), 84, axis.At(v), bottom, Grid, 1, "")
		s.Text(axis.At(v), bottom+16, "middle", 11, Muted, "400", axis.Label(v))
	}
	s.Text((chartLeft+chartRight)/2, bottom+34, "middle", 12, Muted, "400", c.Across)
	x := chartLeft
	for _, k := range c.Legend {
		s.Dot(x, 72, 5, k.Hue)
		s.Text(x+10, 76, "start", 11, Muted, "400", k.Name)
		x += 30 + 7*float64(len(k.Name))
	}
	y := chartTop
	for _, g := range c.Groups {
		g.draw(s, axis, y)
		y += g.height()
	}
	if _, folds := axis.(Folds); folds {
		s.Line(axis.At(1), 84, axis.At(1), bottom, Ink, 1.5, "")
		s.Text(axis.At(1), 80, "middle", 11, Ink, "600", c.One)
	}
	return s.End()
}

func (g *Group) draw(s *SVG, a Axis, y float64) {
	s.Text(24, y, "start", 13, Ink, "600", g.Heading)
	s.Text(24+float64(len(g.Heading))*9+12, y, "start", 11, Muted, "400", g.Beside)
	for _, m := range g.Marks {
		y += 22
		s.Text(chartLeft-12, y+4, "end", 12, Ink, "400", m.Name)
		m.Draw(s, a, y)
		s.Text(chartRight+14, y+4, "start", 12, cmp.Or(m.Hue, Ink), "600", m.Text)
		s.Text(chartWidth-16, y+4, "end", 11, Muted, "400", m.Remark)
	}
}

// Bar is a mark that reaches from the left to a value.
func Bar(name string, v float64, hue string) Mark {
	return Mark{Name: name, Values: []float64{v}, Draw: func(s *SVG, a Axis, y float64) {
		s.Rect(chartLeft, y-7, a.At(v)-chartLeft, 14, hue, 3)
	}}
}

// Spread is a mark of the 50th, 90th and 99th percentile, each with its colour.
func Spread(name string, l *Latency, hues [3]string) Mark {
	values := []float64{l.P50, l.P90, l.P99}
	return Mark{
		Name: name, Values: values, Text: fmt.Sprintf("%s / %s / %s ms", Number(l.P50), Number(l.P90), Number(l.P99)),
		Draw: func(s *SVG, a Axis, y float64) {
			s.Line(a.At(l.P50), y, a.At(l.P99), y, Grid, 4, "")
			for i, v := range values {
				s.Dot(a.At(v), y, 5+float64(i), hues[i])
			}
		},
	}
}

// Folds is a logarithmic axis around 1, that reaches to so many powers of two on both sides.
type Folds float64

// At returns the pixel of v, or of the end if it is further out.
func (f Folds) At(v float64) float64 {
	span := float64(f)
	return chartLeft + (min(max(math.Log2(v), -span), span)+span)/(2*span)*(chartRight-chartLeft)
}

// Ticks are the powers of two.
func (f Folds) Ticks() (ticks []float64) {
	for e := -float64(f); e <= float64(f); e++ {
		ticks = append(ticks, math.Pow(2, e))
	}
	return ticks
}

// Label writes a tick, such as 4×.
func (f Folds) Label(tick float64) string { return strconv.FormatFloat(tick, 'g', 4, 64) + "×" }
