package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// Report is the result of one run.
type Report struct {
	figures.Run
	Databases []*Database `json:"databases"`
}

// Database is the result on one database.
type Database struct {
	Name     string   `json:"name"`     // sqlite, postgres or mysql
	Version  string   `json:"version"`  // as the database reports it
	Settings string   `json:"settings"` // what an acknowledged commit survives
	Figures  []Figure `json:"figures"`

	unjudged bool // a quick run says nothing about targets
}

// Figure is one line of the table.
type Figure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`

	// Against is what Value is compared with, in the same unit; Ratio is the median of
	// the ratios of neighbouring rounds, so not exactly Value/Against.
	Against float64 `json:"against,omitempty"`
	Floor   string  `json:"floor,omitempty"` // what Against is
	Ratio   float64 `json:"ratio,omitempty"`

	Target  *figures.Bound   `json:"target,omitempty"` // of Ratio if there is one, else of Value
	Latency *figures.Latency `json:"latency_ms,omitempty"`
	Writers int              `json:"writers,omitempty"` // concurrent writers to the store
	Note    string           `json:"note,omitempty"`
}

// add judges f, unless this is a quick run, and appends it.
func (d *Database) add(f Figure) {
	f.Target = f.Target.Judged(f.judged(), d.unjudged)
	d.Figures = append(d.Figures, f)
}

func (f *Figure) judged() float64 {
	if f.Floor != "" {
		return f.Ratio
	}
	return f.Value
}

// write puts the report and its charts into dir.
func (r *Report) write(dir string) error {
	return r.Save(dir, "report.json", r, figures.Drawing{File: "throughput.svg", SVG: throughputChart(r)},
		figures.Drawing{File: "targets.svg", SVG: targetsChart(r)}, figures.Drawing{File: "latency.svg", SVG: latencyChart(r)})
}

// WriteTable prints the report for people, a block for each database.
func (r *Report) WriteTable(w io.Writer) error {
	note := fmt.Sprintf("server measurements: TLS, HTTP/2, %d requests at a time over %d connections, a list alone", concurrent, measure.Connections)
	if err := r.WriteHead(w, "server", note); err != nil {
		return err
	}
	for _, d := range r.Databases {
		fmt.Fprintf(w, "\n%s %s, %s\n", d.Name, d.Version, d.Settings)
		t := figures.Table{{"  WHAT", "MEASURED", "P50 / P99", "AGAINST", "RATIO", "TARGET", "VERDICT"}}
		for _, f := range d.Figures {
			t.Add("  "+f.What, f.value(), f.Latency.String(), f.against(), f.ratio(), f.target(), f.verdict())
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

func (f *Figure) value() string { return figures.Number(f.Value) + " " + f.Unit }

func (f *Figure) against() string {
	if f.Floor == "" {
		return ""
	}
	return figures.Number(f.Against) + " " + f.Unit + " " + f.Floor
}

func (f *Figure) ratio() string {
	if f.Floor == "" {
		return ""
	}
	return strconv.FormatFloat(f.Ratio, 'f', 2, 64)
}

func (f *Figure) target() string {
	switch {
	case f.Target == nil:
		return ""
	case f.Floor != "":
		return f.Target.String()
	}
	return f.Target.String() + " " + f.Unit
}

func (f *Figure) verdict() string {
	var words []string
	if f.Target != nil {
		words = append(words, f.Target.Verdict())
	}
	if f.Note != "" {
		words = append(words, "("+f.Note+")")
	}
	return strings.Join(words, " ")
}

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
