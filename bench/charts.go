package bench

import (
	"strconv"

	"github.com/plinth-io/plinth/bench/figures"
)

// throughputChart shows rows a second by concurrent writers, one line for each database,
// and beside each line the bare driver's two floors.
func throughputChart(r *Report) string {
	var places []string
	for _, n := range writers {
		places = append(places, strconv.Itoa(n))
	}
	var lines []figures.Line
	for _, d := range r.Databases {
		line := figures.Line{Name: d.Name}
		for _, n := range writers {
			line.Values = append(line.Values, d.rateOf(n))
		}
		lines = append(lines, line)
		for i, dash := range []string{"3 4", "9 5"} {
			if i < len(d.Figures) { // the two floors come first
				floor := figures.Line{Name: d.Figures[i].What, Dash: dash}
				for range writers {
					floor.Values = append(floor.Values, d.Figures[i].Value)
				}
				lines = append(lines, floor)
			}
		}
	}
	return figures.LineChart("Durable commits: rows per second by concurrent writers", r.Subtitle(), "concurrent writers", "rows/s of 1 KiB", places, lines)
}

// rateOf returns the rate of so many writers, 0 if it was not measured.
func (d *Database) rateOf(writers int) float64 {
	for _, f := range d.Figures {
		if f.Writers == writers {
			return f.Value
		}
	}
	return 0
}

// chart draws a group for each database. mark returns none for a figure that has no place in the chart.
func (r *Report) chart(c figures.Chart, mark func(*Figure) *figures.Mark) string {
	c.Subtitle = r.Subtitle()
	for _, d := range r.Databases {
		g := figures.Group{Heading: d.Name, Beside: d.Version}
		for i := range d.Figures {
			if m := mark(&d.Figures[i]); m != nil {
				g.Marks = append(g.Marks, *m)
			}
		}
		c.Groups = append(c.Groups, g)
	}
	return c.Draw()
}

// targetsChart shows how far each figure is from its target: a bar beyond the line has
// reached it.
func targetsChart(r *Report) string {
	c := figures.Chart{
		Title: "Targets: how many times over each is reached", Across: "times the target, logarithmic; longer is better",
		Axis: figures.Folds(3), One: "target",
	}
	return r.chart(c, func(f *Figure) *figures.Mark {
		if f.Target == nil {
			return nil
		}
		m := figures.Bar(f.What, f.Target.Headroom(f.judged()), f.Target.Hue())
		m.Hue, m.Text, m.Remark = f.Target.Hue(), f.ratio(), f.target()
		if f.Floor == "" {
			m.Text = f.value()
		}
		return &m
	})
}

// latencyChart shows the 50th, 90th and 99th percentile of each operation.
func latencyChart(r *Report) string {
	hues := [3]string{"#0b6fb8", "#e0a100", "#d1495b"}
	c := figures.Chart{
		Title: "Latency: how long operations take", Across: "milliseconds, logarithmic",
		Legend: []figures.Key{{Name: "p50", Hue: hues[0]}, {Name: "p90", Hue: hues[1]}, {Name: "p99", Hue: hues[2]}},
	}
	return r.chart(c, func(f *Figure) *figures.Mark {
		if f.Latency == nil {
			return nil
		}
		m := figures.Spread(f.What, f.Latency, hues)
		return &m
	})
}
