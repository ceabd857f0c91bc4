package bench

import (
	"fmt"
	"math"
	"strconv"

	"github.com/plinth-io/plinth/bench/measure"
)

func (r *Report) subtitle() string {
	s := fmt.Sprintf("plinth %s, %s, %s, %d CPUs, %s", r.Plinth, r.Go, r.Platform, r.CPUs, r.Begun.UTC().Format("2006-01-02"))
	if r.Quick {
		s += ", quick run: not to be judged by"
	}
	return s
}

// throughputChart shows rows a second by concurrent writers, one line for each database,
// and beside each line the bare driver's two floors.
func throughputChart(r *Report) string {
	const width, height, left, right, top, bottom = 900.0, 480.0, 84.0, 620.0, 84.0, 420.0
	s := measure.NewSVG(width, height, "Durable commits: rows per second by concurrent writers", r.subtitle())
	y := measure.NewLogAxis(r.rates(), bottom, top)
	for _, v := range y.Ticks() {
		s.Line(left, y.At(v), right, y.At(v), measure.Grid, 1, "")
		s.Text(left-8, y.At(v)+4, "end", 11, measure.Muted, "400", measure.Tick(v))
	}
	x := func(i int) float64 { return left + 40 + float64(i)*(right-left-80)/float64(len(writers)-1) }
	for i, n := range writers {
		s.Text(x(i), bottom+20, "middle", 12, measure.Ink, "400", strconv.Itoa(n))
	}
	s.Text((left+right)/2, bottom+44, "middle", 12, measure.Muted, "400", "concurrent writers")
	s.Upright(24, (top+bottom)/2, "rows/s of 1 KiB, logarithmic")
	legend := top + 10
	for i, d := range r.Databases {
		drawThroughput(s, d, measure.Hues[i%len(measure.Hues)], x, y, &legend)
	}
	return s.End()
}

func drawThroughput(s *measure.SVG, d *Database, hue string, x func(int) float64, y measure.LogAxis, legend *float64) {
	const left, right = 84.0, 620.0
	var points [][2]float64
	for i, n := range writers {
		for _, f := range d.Figures {
			if f.Writers == n {
				points = append(points, [2]float64{x(i), y.At(f.Value)})
			}
		}
	}
	s.Path(points, hue)
	for _, p := range points {
		s.Dot(p[0], p[1], 5, hue)
	}
	s.Line(right+28, *legend-4, right+52, *legend-4, hue, 3, "")
	s.Text(right+60, *legend, "start", 13, measure.Ink, "600", d.Name)
	*legend += 20
	for i, dash := range []string{"3 4", "9 5"} {
		if i >= len(d.Figures) {
			break
		}
		f := d.Figures[i] // the two floors come first
		s.Line(left, y.At(f.Value), right, y.At(f.Value), hue, 1.3, dash)
		s.Line(right+28, *legend-4, right+52, *legend-4, hue, 1.3, dash)
		s.Text(right+60, *legend, "start", 11, measure.Muted, "400", f.What)
		*legend += 18
	}
	*legend += 14
}

// rates returns all values of the throughput chart.
func (r *Report) rates() (rates []float64) {
	for _, d := range r.Databases {
		for _, f := range d.Figures {
			if f.Unit == "rows/s" {
				rates = append(rates, f.Value)
			}
		}
	}
	return rates
}

// rows lays out one figure a line under the name of its database.
func (r *Report) rows(take func(*Figure) bool, heading func(d *Database, y float64), line func(f *Figure, y float64)) (bottom float64) {
	y := 104.0
	for _, d := range r.Databases {
		heading(d, y)
		y += 26
		for i := range d.Figures {
			if take(&d.Figures[i]) {
				line(&d.Figures[i], y)
				y += 24
			}
		}
		y += 14
	}
	return y
}

// height returns the height that rows needs.
func (r *Report) height(take func(*Figure) bool) float64 {
	return r.rows(take, func(*Database, float64) {}, func(*Figure, float64) {}) + 44
}

// targetsChart shows how far each figure is from its target: a bar beyond the line has
// reached it.
func targetsChart(r *Report) string {
	const width, left, right, most = 980.0, 360.0, 760.0, 8.0
	take := func(f *Figure) bool { return f.Target != nil }
	s := measure.NewSVG(width, r.height(take), "Targets: how many times over each is reached", r.subtitle())
	// From an eighth to eight times, so that the target is in the middle.
	at := func(v float64) float64 {
		v = min(max(v, 1/most), most)
		return left + (math.Log2(v)+3)/6*(right-left)
	}
	bottom := s.Height - 44
	for v := 1 / most; v <= most; v *= 2 {
		s.Line(at(v), 84, at(v), bottom, measure.Grid, 1, "")
		s.Text(at(v), bottom+16, "middle", 11, measure.Muted, "400", strconv.FormatFloat(v, 'g', 4, 64)+"×")
	}
	s.Text((left+right)/2, bottom+34, "middle", 12, measure.Muted, "400", "times the target, logarithmic; longer is better")
	r.rows(take, heading(s), func(f *Figure, y float64) {
		colour := f.Target.colour()
		s.Text(left-12, y+4, "end", 12, measure.Ink, "400", f.What)
		s.Rect(left, y-7, at(f.headroom())-left, 14, colour, 3)
		s.Text(right+14, y+4, "start", 12, colour, "600", f.reached())
		s.Text(width-16, y+4, "end", 11, measure.Muted, "400", f.target())
	})
	s.Line(at(1), 84, at(1), bottom, measure.Ink, 1.5, "")
	s.Text(at(1), 80, "middle", 11, measure.Ink, "600", "target")
	return s.End()
}

func (t *Target) colour() string {
	switch {
	case t.Met == nil:
		return measure.Muted
	case *t.Met:
		return measure.Good
	}
	return measure.Bad
}

func heading(s *measure.SVG) func(*Database, float64) {
	return func(d *Database, y float64) {
		s.Text(24, y, "start", 14, measure.Ink, "600", d.Name)
		s.Text(24+float64(len(d.Name))*9+12, y, "start", 11, measure.Muted, "400", d.Version)
	}
}

func (f *Figure) reached() string {
	if f.Floor != "" {
		return f.ratio()
	}
	return f.value()
}

// latencyChart shows the 50th, 90th and 99th percentile of each operation.
func latencyChart(r *Report) string {
	const width, left, right = 980.0, 340.0, 780.0
	take := func(f *Figure) bool { return f.Latency != nil }
	s := measure.NewSVG(width, r.height(take), "Latency: how long operations take", r.subtitle())
	x := measure.NewLogAxis(r.latencies(), left, right)
	bottom := s.Height - 44
	for _, v := range x.Ticks() {
		s.Line(x.At(v), 84, x.At(v), bottom, measure.Grid, 1, "")
		s.Text(x.At(v), bottom+16, "middle", 11, measure.Muted, "400", measure.Tick(v))
	}
	s.Text((left+right)/2, bottom+34, "middle", 12, measure.Muted, "400", "milliseconds, logarithmic")
	for i, name := range []string{"p50", "p90", "p99"} {
		s.Dot(right-120+float64(i)*56, 72, 5, shades[i])
		s.Text(right-110+float64(i)*56, 76, "start", 11, measure.Muted, "400", name)
	}
	r.rows(take, heading(s), func(f *Figure, y float64) {
		l := f.Latency
		s.Text(left-12, y+4, "end", 12, measure.Ink, "400", f.What)
		s.Line(x.At(l.P50), y, x.At(l.P99), y, "#9fb3c8", 4, "")
		for i, v := range []float64{l.P50, l.P90, l.P99} {
			s.Dot(x.At(v), y, 6, shades[i])
		}
		s.Text(right+14, y+4, "start", 11, measure.Muted, "400",
			fmt.Sprintf("%s / %s / %s ms", measure.Number(l.P50), measure.Number(l.P90), measure.Number(l.P99)))
	})
	return s.End()
}

var shades = []string{"#0b6fb8", "#e0a100", "#d1495b"}

func (r *Report) latencies() (values []float64) {
	for _, d := range r.Databases {
		for _, f := range d.Figures {
			if f.Latency != nil {
				values = append(values, f.Latency.P50, f.Latency.P90, f.Latency.P99)
			}
		}
	}
	return values
}
