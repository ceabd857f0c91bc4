package beside

import (
	"fmt"
	"math"
	"strconv"

	"github.com/plinth-io/plinth/bench/measure"
)

func (r *Report) subtitle() string {
	s := fmt.Sprintf("plinth %s, %s, %s, %d CPUs shared by load and endpoints, %s", r.Plinth, r.Go, r.Platform, r.CPUs, r.Begun.UTC().Format("2006-01-02"))
	if r.Quick {
		s += ", quick run: not to be judged by"
	}
	if r.Interrupted {
		s += ", interrupted"
	}
	return s
}

// hue returns the colour of an endpoint, the same in all charts.
func (r *Report) hue(name string) string {
	for i, e := range r.Endpoints {
		if e.Name == name {
			return measure.Hues[i%len(measure.Hues)]
		}
	}
	return measure.Muted
}

// lines lays out one line for each endpoint below the name of each row that has any.
func (r *Report) lines(take func(*Row, *Cell) bool, heading func(*Row, float64), line func(*Row, *Cell, float64)) (bottom float64) {
	y := 104.0
	for _, row := range r.Rows {
		headed := false
		for _, c := range row.Cells {
			if c.Error != "" || !take(row, c) {
				continue
			}
			if !headed {
				heading(row, y)
				headed = true
				y += 24
			}
			line(row, c, y)
			y += 22
		}
		if headed {
			y += 12
		}
	}
	return y
}

const chartWidth, chartLeft, chartRight = 980.0, 220.0, 780.0

// chart draws the cells that are taken on a logarithmic axis.
func (r *Report) chart(title, axis string, take func(*Row, *Cell) bool, values func(*Cell) []float64, draw func(*measure.SVG, measure.LogAxis, *Row, *Cell, float64)) string {
	var all []float64
	none := func(*Row, float64) {}
	height := 44 + r.lines(take, none, func(_ *Row, c *Cell, _ float64) { all = append(all, values(c)...) })
	s := measure.NewSVG(chartWidth, height, title, r.subtitle())
	x := measure.NewLogAxis(all, chartLeft, chartRight)
	bottom := height - 44
	for _, v := range x.Ticks() {
		s.Line(x.At(v), 84, x.At(v), bottom, measure.Grid, 1, "")
		s.Text(x.At(v), bottom+16, "middle", 11, measure.Muted, "400", measure.Tick(v))
	}
	s.Text((chartLeft+chartRight)/2, bottom+34, "middle", 12, measure.Muted, "400", axis)
	r.lines(take, func(row *Row, y float64) { s.Text(24, y, "start", 13, measure.Ink, "600", row.What) },
		func(row *Row, c *Cell, y float64) {
			s.Text(chartLeft-12, y+4, "end", 12, measure.Ink, "400", c.Endpoint)
			draw(s, x, row, c, y)
		})
	return s.End()
}

// ratesChart shows operations a second.
func ratesChart(r *Report) string {
	return r.chart("Rates: operations per second", "per second, logarithmic; longer is better",
		func(row *Row, c *Cell) bool { return row.Unit == "/s" && c.Value > 0 },
		func(c *Cell) []float64 { return []float64{c.Value} },
		func(s *measure.SVG, x measure.LogAxis, _ *Row, c *Cell, y float64) {
			s.Rect(chartLeft, y-7, x.At(c.Value)-chartLeft, 14, r.hue(c.Endpoint), 3)
			s.Text(chartRight+14, y+4, "start", 12, measure.Ink, "600", c.value("/s"))
		})
}

// latencyChart shows the 50th, 90th and 99th percentile.
func latencyChart(r *Report) string {
	return r.chart("Latency: 50th, 90th and 99th percentile", "milliseconds, logarithmic",
		func(_ *Row, c *Cell) bool { return c.Latency != nil && c.Latency.P50 > 0 },
		func(c *Cell) []float64 { return []float64{c.Latency.P50, c.Latency.P99} },
		func(s *measure.SVG, x measure.LogAxis, _ *Row, c *Cell, y float64) {
			l, hue := c.Latency, r.hue(c.Endpoint)
			s.Line(x.At(l.P50), y, x.At(l.P99), y, measure.Grid, 4, "")
			for i, v := range []float64{l.P50, l.P90, l.P99} {
				s.Dot(x.At(v), y, 5+float64(i), hue)
			}
			s.Text(chartRight+14, y+4, "start", 11, measure.Muted, "400",
				fmt.Sprintf("%s / %s / %s ms", measure.Number(l.P50), measure.Number(l.P90), measure.Number(l.P99)))
		})
}

// better returns how many times better plinth is, whichever way the row counts.
func (row *Row) better(ratio float64) float64 {
	if row.Less {
		return 1 / ratio
	}
	return ratio
}

// ratiosChart shows how many times better plinth is than each other endpoint: a bar that ends right
// of the line is better.
func ratiosChart(r *Report) string {
	const most = 64.0
	take := func(_ *Row, c *Cell) bool { return len(c.Ratios) > 0 }
	widest := 1.0
	height := 44 + r.lines(take, func(*Row, float64) {}, func(row *Row, c *Cell, _ float64) {
		for _, ratio := range c.Ratios {
			widest = max(widest, math.Abs(math.Log2(row.better(ratio.Ratio))))
		}
	})
	// Dots of several others share a line, each in the other's colour.
	span := min(math.Ceil(widest), math.Log2(most))
	at := func(v float64) float64 {
		return chartLeft + (min(max(math.Log2(v), -span), span)+span)/(2*span)*(chartRight-chartLeft)
	}
	s := measure.NewSVG(chartWidth, height, "plinth beside other endpoints: how many times better", r.subtitle())
	bottom := height - 44
	for e := -span; e <= span; e++ {
		v := math.Pow(2, e)
		s.Line(at(v), 84, at(v), bottom, measure.Grid, 1, "")
		s.Text(at(v), bottom+16, "middle", 11, measure.Muted, "400", strconv.FormatFloat(v, 'g', 3, 64)+"×")
	}
	s.Text((chartLeft+chartRight)/2, bottom+34, "middle", 12, measure.Muted, "400", "times as good, logarithmic; further right is better")
	r.legend(s)
	r.lines(take, func(row *Row, y float64) { s.Text(24, y, "start", 13, measure.Ink, "600", row.What) },
		func(row *Row, c *Cell, y float64) {
			s.Text(chartLeft-12, y+4, "end", 12, measure.Ink, "400", c.Endpoint)
			text := ""
			for i, ratio := range c.Ratios {
				if i > 0 {
					text += " · "
				}
				text += measure.Number(row.better(ratio.Ratio)) + "×"
				s.Line(at(1), y, at(row.better(ratio.Ratio)), y, r.hue(ratio.To), 3, "")
				s.Dot(at(row.better(ratio.Ratio)), y, 6, r.hue(ratio.To))
			}
			s.Text(chartRight+14, y+4, "start", 12, measure.Ink, "600", text)
		})
	s.Line(at(1), 84, at(1), bottom, measure.Ink, 1.5, "")
	return s.End()
}

func (r *Report) legend(s *measure.SVG) {
	x := chartLeft
	for _, name := range r.others() {
		s.Dot(x, 72, 5, r.hue(name))
		s.Text(x+10, 76, "start", 11, measure.Muted, "400", "than "+name)
		x += 30 + 7*float64(len(name)+5)
	}
}
