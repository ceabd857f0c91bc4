package figures

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Comparison is the report on several servers, called endpoints, which took turns under the same load.
type Comparison struct {
	Run
	Endpoints []Endpoint `json:"endpoints"`
	Rows      []*Row     `json:"rows"`
}

// Endpoint is one that was measured.
type Endpoint struct {
	Name    string `json:"name"`    // of plinth's: sqlite, postgres or mysql
	Own     bool   `json:"own"`     // is plinth
	Version string `json:"version"` // as the endpoint tells it
}

// Row is one thing that was measured, at all endpoints.
type Row struct {
	What  string  `json:"what"`
	Unit  string  `json:"unit"`
	Less  bool    `json:"less_is_better"`
	Cells []*Cell `json:"cells"`

	Targets []Target `json:"-"`
	Sum     bool     `json:"-"` // of the rounds, instead of their median
}

// Cell is one endpoint's part of a row.
type Cell struct {
	Endpoint string   `json:"endpoint"`
	Value    float64  `json:"value"` // the median of the rounds
	Latency  *Latency `json:"latency_ms,omitempty"`
	Note     string   `json:"note,omitempty"`
	Error    string   `json:"error,omitempty"`
	Ratios   []Ratio  `json:"ratios,omitempty"` // of plinth's endpoints, to each other one
	Target   *Bound   `json:"target,omitempty"` // of the value

	measured Series
}

// Add adds what the endpoint did in one round.
func (c *Cell) Add(s Sample) {
	c.measured.Add(s.Value, s.Samples...)
	if s.Note != "" {
		c.Note = s.Note
	}
}

// Ratio is how an endpoint of plinth compares with another.
type Ratio struct {
	To     string  `json:"to"`
	Ratio  float64 `json:"ratio"` // the median of those of neighbouring rounds
	Target *Bound  `json:"target,omitempty"`
}

// Sample is what one endpoint did in one round, for one row.
type Sample struct {
	Value   float64
	Samples []time.Duration
	Note    string
	None    bool // this endpoint has no such figure
}

// Target is what plinth has to reach in a row.
type Target struct {
	Own   string // plinth's database, as a part of "sqlite" or of "postgres mysql"; empty: all
	To    string // etcd or kine; empty: the value itself is meant
	Bound *Bound
}

// Cell returns the part of an endpoint, which it adds if there is none.
func (r *Row) Cell(name string) *Cell {
	if c := r.find(name); c != nil {
		return c
	}
	c := &Cell{Endpoint: name}
	r.Cells = append(r.Cells, c)
	return c
}

func (r *Row) find(name string) *Cell {
	for _, c := range r.Cells {
		if c.Endpoint == name {
			return c
		}
	}
	return nil
}

// Finish computes what the rounds of endpoints come to.
func (r *Comparison) Finish(endpoints []Endpoint) {
	for _, e := range endpoints {
		known := func(other Endpoint) bool { return other.Name == e.Name } // a kube-apiserver is named like what it runs on
		if !slices.ContainsFunc(r.Endpoints, known) {
			r.Endpoints = append(r.Endpoints, e)
		}
	}
	rows := r.Rows[:0]
	for _, row := range r.Rows {
		if len(row.Cells) > 0 {
			row.finish(r)
			rows = append(rows, row)
		}
	}
	r.Rows = rows
	r.Seconds = time.Since(r.Begun).Seconds()
}

func (row *Row) finish(r *Comparison) {
	for _, c := range row.Cells {
		c.Value, c.Latency = c.measured.Median(), c.measured.Latency()
		if row.Sum {
			c.Value = 0
			for _, v := range c.measured.rounds {
				c.Value += v
			}
		}
	}
	for _, own := range r.Endpoints {
		c := row.find(own.Name)
		if !own.Own || c == nil || c.Error != "" {
			continue
		}
		c.Target = row.absolute().Judged(c.Value, r.Quick)
		for _, other := range r.Endpoints {
			if to := row.find(other.Name); !other.Own && to != nil && to.Error == "" {
				row.compare(c, to, r.Quick)
			}
		}
	}
}

// compare adds the ratio of c to another endpoint, unless one has 0 or the row counts faults.
func (row *Row) compare(c, to *Cell, quick bool) {
	ratio := Ratio{To: to.Endpoint, Ratio: c.measured.Ratio(&to.measured)}
	if row.Sum || !(ratio.Ratio > 0) || math.IsInf(ratio.Ratio, 0) {
		return
	}
	ratio.Target = row.relative(c.Endpoint, to.Endpoint).Judged(ratio.Ratio, quick)
	c.Ratios = append(c.Ratios, ratio)
}

// absolute returns the bound of values in this row, nil if there is none.
func (row *Row) absolute() *Bound {
	for _, t := range row.Targets {
		if t.To == "" {
			return t.Bound
		}
	}
	return nil
}

// relative returns the bound of the ratio between two endpoints, nil if there is none. A kine whose
// name says on which database it is, as kine-mysql, is judged beside the same database.
func (row *Row) relative(own, other string) *Bound {
	for _, t := range row.Targets {
		if t.To != "" && strings.HasPrefix(other, t.To) && (t.Own == "" || strings.Contains(t.Own, own)) && sameDatabase(own, other) {
			return t.Bound
		}
	}
	return nil
}

func sameDatabase(own, other string) bool {
	_, on, named := strings.Cut(other, "-")
	if !named || !strings.HasPrefix(other, "kine") {
		return true
	}
	return on == own || own == "mysql" && on == "mariadb"
}

// Write puts the report and its charts into dir, as files whose names begin with name.
func (r *Comparison) Write(dir, name string) error {
	return r.Save(dir, name+".json", r, Drawing{name + "-rates.svg", ratesChart(r)},
		Drawing{name + "-ratios.svg", ratiosChart(r)}, Drawing{name + "-latency.svg", latencyChart(r)})
}

// WriteTable prints the report for people: a block for each row, a line for each endpoint.
func (r *Comparison) WriteTable(w io.Writer) error {
	if err := r.WriteHead(w, "endpoints"); err != nil {
		return err
	}
	others := r.others()
	t := Table{{}, append([]string{"", "MEASURED", "P50 / P99"}, headsOf(others)...)}
	for _, row := range r.Rows {
		t.Add(row.What)
		for _, c := range row.Cells {
			cells := append([]string{"  " + c.Endpoint, c.value(row.Unit), c.Latency.String()}, c.ratios(others)...)
			t.Add(append(cells, c.remark())...)
		}
	}
	return t.Write(w)
}

// others returns the names of the endpoints beside plinth.
func (r *Comparison) others() (names []string) {
	for _, e := range r.Endpoints {
		if !e.Own {
			names = append(names, e.Name)
		}
	}
	return names
}

func headsOf(names []string) []string {
	heads := make([]string, len(names))
	for i, name := range names {
		heads[i] = "BY " + strings.ToUpper(name)
	}
	return heads
}

func (c *Cell) value(unit string) string {
	if c.Error != "" {
		return "failed"
	}
	return Number(c.Value) + " " + unit
}

// ratios returns the ratio to each other endpoint, and whether its target was met.
func (c *Cell) ratios(others []string) []string {
	cells := make([]string, len(others))
	for i, name := range others {
		for _, ratio := range c.Ratios {
			if ratio.To != name {
				continue
			}
			cells[i] = Number(ratio.Ratio)
			if ratio.Target != nil {
				cells[i] += fmt.Sprintf(" (%v %s)", ratio.Target, ratio.Target.Verdict())
			}
		}
	}
	return cells
}

func (c *Cell) remark() string {
	var words []string
	if c.Target != nil {
		words = append(words, c.Target.String()+" "+c.Target.Verdict())
	}
	if c.Error != "" {
		words = append(words, c.Error)
	}
	if c.Note != "" {
		words = append(words, c.Note)
	}
	return strings.Join(words, "; ")
}

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
