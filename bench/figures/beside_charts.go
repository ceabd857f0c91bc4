package figures

import "math"

// hue returns the colour of an endpoint, the same in all charts.
func (r *Comparison) hue(name string) string {
	for i, e := range r.Endpoints {
		if e.Name == name {
			return Hues[i%len(Hues)]
		}
	}
	return Muted
}

// chart draws a group for each row that has marks. mark returns none for a cell that has no place in the chart.
func (r *Comparison) chart(c Chart, mark func(*Row, *Cell) *Mark) string {
	c.Subtitle = r.Subtitle("shared by load and endpoints")
	for _, row := range r.Rows {
		g := Group{Heading: row.What}
		for _, cell := range row.Cells {
			if cell.Error != "" {
				continue
			}
			if m := mark(row, cell); m != nil {
				g.Marks = append(g.Marks, *m)
			}
		}
		if len(g.Marks) > 0 {
			c.Groups = append(c.Groups, g)
		}
	}
	return c.Draw()
}

// ratesChart shows operations a second.
func ratesChart(r *Comparison) string {
	c := Chart{Title: "Rates: operations per second", Across: "per second, logarithmic; longer is better"}
	return r.chart(c, func(row *Row, cell *Cell) *Mark {
		if row.Unit != "/s" || cell.Value <= 0 {
			return nil
		}
		m := Bar(cell.Endpoint, cell.Value, r.hue(cell.Endpoint))
		m.Text = cell.value("/s")
		return &m
	})
}

// latencyChart shows the 50th, 90th and 99th percentile.
func latencyChart(r *Comparison) string {
	c := Chart{Title: "Latency: 50th, 90th and 99th percentile", Across: "milliseconds, logarithmic"}
	return r.chart(c, func(_ *Row, cell *Cell) *Mark {
		if cell.Latency == nil || cell.Latency.P50 <= 0 {
			return nil
		}
		hue := r.hue(cell.Endpoint)
		m := Spread(cell.Endpoint, cell.Latency, [3]string{hue, hue, hue})
		return &m
	})
}

// better returns how many times better plinth is, whichever way the row counts.
func (row *Row) better(ratio float64) float64 {
	if row.Less {
		return 1 / ratio
	}
	return ratio
}

// ratiosChart shows how many times better plinth is than each other endpoint: a line that ends right
// of 1 is better. Those of several others share a line, each in the other's colour.
func ratiosChart(r *Comparison) string {
	const most = 6 // powers of two
	c := Chart{Title: "plinth beside other endpoints: how many times better", Across: "times as good, logarithmic; further right is better"}
	for _, name := range r.others() {
		c.Legend = append(c.Legend, Key{"than " + name, r.hue(name)})
	}
	widest := 1.0
	for _, row := range r.Rows {
		for _, cell := range row.Cells {
			for _, ratio := range cell.Ratios {
				widest = max(widest, math.Abs(math.Log2(ratio.Ratio)))
			}
		}
	}
	c.Axis = Folds(min(math.Ceil(widest), most))
	return r.chart(c, func(row *Row, cell *Cell) *Mark {
		if len(cell.Ratios) == 0 {
			return nil
		}
		m := Mark{Name: cell.Endpoint, Draw: func(s *SVG, a Axis, y float64) {
			for _, ratio := range cell.Ratios {
				at, hue := a.At(row.better(ratio.Ratio)), r.hue(ratio.To)
				s.Line(a.At(1), y, at, y, hue, 3, "")
				s.Dot(at, y, 6, hue)
			}
		}}
		for i, ratio := range cell.Ratios {
			if i > 0 {
				m.Text += " · "
			}
			m.Text += Number(row.better(ratio.Ratio)) + "×"
		}
		return &m
	})
}
