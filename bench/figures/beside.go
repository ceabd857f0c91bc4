package figures

import (
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

// EndpointName returns the name.
func (e *Endpoint) EndpointName() string { return e.Name }

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

	rounds  []float64
	samples []time.Duration
}

// Add adds what the endpoint did in one round.
func (c *Cell) Add(s Sample) {
	c.rounds = append(c.rounds, s.Value)
	c.samples = append(c.samples, s.Samples...)
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
		c.Value = Median(c.rounds)
		if row.Sum {
			c.Value = sum(c.rounds)
		}
		c.Latency = LatencyOf(c.samples)
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

func sum(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// compare adds the ratio of c to another endpoint, unless one has 0 or the row counts faults.
func (row *Row) compare(c, to *Cell, quick bool) {
	ratio := Ratio{To: to.Endpoint, Ratio: Median(Ratios(c.rounds, to.rounds))}
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
