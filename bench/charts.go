package bench

import (
	"fmt"
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

func (a logAxis) at(v float64) float64 {
	if v <= 0 {
		return a.from
	}
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

// ticks returns 1, 2 and 5 of each power of ten, or only the powers if there are many.
func (a logAxis) ticks() (ticks []float64) {
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

func tick(v float64) string {
	if v >= 1 {
		return number(math.Round(v))
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

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
	s := newSVG(width, height, "Durable commits: rows per second by concurrent writers", r.subtitle())
	y := newLogAxis(r.rates(), bottom, top)
	for _, v := range y.ticks() {
		s.line(left, y.at(v), right, y.at(v), grid, 1, "")
		s.text(left-8, y.at(v)+4, "end", 11, muted, "400", tick(v))
	}
	x := func(i int) float64 { return left + 40 + float64(i)*(right-left-80)/float64(len(writers)-1) }
	for i, n := range writers {
		s.text(x(i), bottom+20, "middle", 12, ink, "400", strconv.Itoa(n))
	}
	s.text((left+right)/2, bottom+44, "middle", 12, muted, "400", "concurrent writers")
	s.upright(24, (top+bottom)/2, "rows/s of 1 KiB, logarithmic")
	legend := top + 10
	for i, d := range r.Databases {
		s.throughput(d, hues[i%len(hues)], x, y, &legend)
	}
	return s.end()
}

func (s *svg) throughput(d *Database, hue string, x func(int) float64, y logAxis, legend *float64) {
	const left, right = 84.0, 620.0
	var points [][2]float64
	for i, n := range writers {
		for _, f := range d.Figures {
			if f.Writers == n {
				points = append(points, [2]float64{x(i), y.at(f.Value)})
			}
		}
	}
	s.path(points, hue)
	for _, p := range points {
		s.dot(p[0], p[1], 5, hue)
	}
	s.line(right+28, *legend-4, right+52, *legend-4, hue, 3, "")
	s.text(right+60, *legend, "start", 13, ink, "600", d.Name)
	*legend += 20
	for i, dash := range []string{"3 4", "9 5"} {
		if i >= len(d.Figures) {
			break
		}
		f := d.Figures[i] // the two floors come first
		s.line(left, y.at(f.Value), right, y.at(f.Value), hue, 1.3, dash)
		s.line(right+28, *legend-4, right+52, *legend-4, hue, 1.3, dash)
		s.text(right+60, *legend, "start", 11, muted, "400", f.What)
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
	s := newSVG(width, r.height(take), "Targets: how many times over each is reached", r.subtitle())
	// From an eighth to eight times, so that the target is in the middle.
	at := func(v float64) float64 {
		v = min(max(v, 1/most), most)
		return left + (math.Log2(v)+3)/6*(right-left)
	}
	bottom := s.height - 44
	for v := 1 / most; v <= most; v *= 2 {
		s.line(at(v), 84, at(v), bottom, grid, 1, "")
		s.text(at(v), bottom+16, "middle", 11, muted, "400", strconv.FormatFloat(v, 'g', 4, 64)+"×")
	}
	s.text((left+right)/2, bottom+34, "middle", 12, muted, "400", "times the target, logarithmic; longer is better")
	r.rows(take, s.heading, func(f *Figure, y float64) {
		colour := f.Target.colour()
		s.text(left-12, y+4, "end", 12, ink, "400", f.What)
		s.rect(left, y-7, at(f.headroom())-left, 14, colour, 3)
		s.text(right+14, y+4, "start", 12, colour, "600", f.reached())
		s.text(width-16, y+4, "end", 11, muted, "400", f.target())
	})
	s.line(at(1), 84, at(1), bottom, ink, 1.5, "")
	s.text(at(1), 80, "middle", 11, ink, "600", "target")
	return s.end()
}

func (t *Target) colour() string {
	switch {
	case t.Met == nil:
		return muted
	case *t.Met:
		return good
	}
	return bad
}

func (s *svg) heading(d *Database, y float64) {
	s.text(24, y, "start", 14, ink, "600", d.Name)
	s.text(24+float64(len(d.Name))*9+12, y, "start", 11, muted, "400", d.Version)
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
	s := newSVG(width, r.height(take), "Latency: how long operations take", r.subtitle())
	x := newLogAxis(r.latencies(), left, right)
	bottom := s.height - 44
	for _, v := range x.ticks() {
		s.line(x.at(v), 84, x.at(v), bottom, grid, 1, "")
		s.text(x.at(v), bottom+16, "middle", 11, muted, "400", tick(v))
	}
	s.text((left+right)/2, bottom+34, "middle", 12, muted, "400", "milliseconds, logarithmic")
	for i, name := range []string{"p50", "p90", "p99"} {
		s.dot(right-120+float64(i)*56, 72, 5, shades[i])
		s.text(right-110+float64(i)*56, 76, "start", 11, muted, "400", name)
	}
	r.rows(take, s.heading, func(f *Figure, y float64) {
		l := f.Latency
		s.text(left-12, y+4, "end", 12, ink, "400", f.What)
		s.line(x.at(l.P50), y, x.at(l.P99), y, "#9fb3c8", 4, "")
		for i, v := range []float64{l.P50, l.P90, l.P99} {
			s.dot(x.at(v), y, 6, shades[i])
		}
		s.text(right+14, y+4, "start", 11, muted, "400",
			fmt.Sprintf("%s / %s / %s ms", number(l.P50), number(l.P90), number(l.P99)))
	})
	return s.end()
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
