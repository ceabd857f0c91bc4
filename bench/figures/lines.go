package figures

// Line is one series of a chart. A value of 0 is not there.
type Line struct {
	Name   string
	Values []float64 // one for each place on the horizontal axis
	Dash   string    // how it is dashed, if it belongs to the line before; empty: it has dots and a colour of its own
}

// LineChart draws lines over places, on a logarithmic vertical axis.
func LineChart(title, subtitle, across, up string, places []string, lines []Line) string {
	const width, height, left, right, top, bottom = 900.0, 480.0, 84.0, 640.0, 84.0, 420.0
	s := newSVG(width, height, title, subtitle)
	var all []float64
	for _, line := range lines {
		all = append(all, line.Values...)
	}
	y := newLogAxis(all, bottom, top)
	for _, v := range y.Ticks() {
		s.Line(left, y.At(v), right, y.At(v), Grid, 1, "")
		s.Text(left-8, y.At(v)+4, "end", 11, Muted, "400", y.Label(v))
	}
	x := func(i int) float64 { return left + 40 + float64(i)*(right-left-80)/float64(max(len(places)-1, 1)) }
	for i, place := range places {
		s.Text(x(i), bottom+20, "middle", 12, Ink, "400", place)
	}
	s.Text((left+right)/2, bottom+44, "middle", 12, Muted, "400", across)
	s.Upright(24, (top+bottom)/2, up+", logarithmic")
	hues := 0
	for i, line := range lines {
		if line.Dash == "" {
			hues++
		}
		hue, legend := Hues[max(hues-1, 0)%len(Hues)], top+10+float64(i)*22
		s.Line(right+28, legend-4, right+52, legend-4, hue, 3, line.Dash)
		s.Text(right+60, legend, "start", 12, Ink, "400", line.Name)
		var points [][2]float64
		for k, v := range line.Values {
			if v > 0 {
				points = append(points, [2]float64{x(k), y.At(v)})
			}
		}
		s.Path(points, hue, line.Dash)
		for _, p := range points {
			if line.Dash == "" {
				s.Dot(p[0], p[1], 5, hue)
			}
		}
	}
	return s.End()
}
