package beside

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
)

// Report is the result of one run.
type Report struct {
	Plinth      string     `json:"plinth"` // version
	Go          string     `json:"go"`
	Platform    string     `json:"platform"` // such as linux/amd64
	CPUs        int        `json:"cpus"`
	Begun       time.Time  `json:"begun"`
	Seconds     float64    `json:"seconds"`
	Quick       bool       `json:"quick"`       // short rounds, few keys: a smoke test
	Interrupted bool       `json:"interrupted"` // not all was measured
	Endpoints   []Endpoint `json:"endpoints"`
	Rows        []*Row     `json:"rows"`

	// Files are the paths of what was written, the report itself among them.
	Files []string `json:"files"`
}

// Endpoint is one that was measured.
type Endpoint struct {
	Name    string `json:"name"`    // of plinth's: sqlite, postgres or mysql
	Own     bool   `json:"own"`     // is plinth
	Version string `json:"version"` // as the endpoint tells it
}

// EndpointName returns the name.
func (e *Endpoint) EndpointName() string { return e.Name }

// NewReport returns a report without measurements.
func NewReport(version string, begun time.Time, quick bool) *Report {
	return &Report{
		Plinth: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs: runtime.NumCPU(), Begun: begun, Quick: quick,
	}
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
	Endpoint string           `json:"endpoint"`
	Value    float64          `json:"value"` // the median of the rounds
	Latency  *measure.Latency `json:"latency_ms,omitempty"`
	Note     string           `json:"note,omitempty"`
	Error    string           `json:"error,omitempty"`
	Ratios   []Ratio          `json:"ratios,omitempty"` // of plinth's endpoints, to each other one
	Target   *Bound           `json:"target,omitempty"` // of the value

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

// Bound is what a ratio or a value has to reach.
type Bound struct {
	AtMost bool    `json:"at_most"` // else at least
	Bound  float64 `json:"bound"`
	Met    *bool   `json:"met,omitempty"` // nil: not judged, as in a quick run
}

func (b Bound) judged(v float64, quick bool) *Bound {
	if quick {
		return &b
	}
	met := v >= b.Bound
	if b.AtMost {
		met = v <= b.Bound
	}
	b.Met = &met
	return &b
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
func (r *Report) Finish(endpoints []Endpoint) {
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

func (row *Row) finish(r *Report) {
	for _, c := range row.Cells {
		c.Value = measure.Median(c.rounds)
		if row.Sum {
			c.Value = sum(c.rounds)
		}
		c.Latency = measure.LatencyOf(c.samples)
	}
	for _, own := range r.Endpoints {
		c := row.find(own.Name)
		if !own.Own || c == nil || c.Error != "" {
			continue
		}
		if bound := row.absolute(); bound != nil {
			c.Target = bound.judged(c.Value, r.Quick)
		}
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
	ratio := Ratio{To: to.Endpoint, Ratio: measure.Median(measure.Ratios(c.rounds, to.rounds))}
	if row.Sum || !(ratio.Ratio > 0) || math.IsInf(ratio.Ratio, 0) {
		return
	}
	if bound := row.relative(c.Endpoint, to.Endpoint); bound != nil {
		ratio.Target = bound.judged(ratio.Ratio, quick)
	}
	c.Ratios = append(c.Ratios, ratio)
}

// Missed returns the targets that were not reached, as "sqlite: create, 64 at a time".
func (r *Report) Missed() (missed []string) {
	for _, row := range r.Rows {
		for _, c := range row.Cells {
			for _, b := range c.bounds() {
				if b.Met != nil && !*b.Met {
					missed = append(missed, c.Endpoint+": "+row.What)
					break
				}
			}
		}
	}
	return missed
}

func (c *Cell) bounds() (bounds []*Bound) {
	if c.Target != nil {
		bounds = append(bounds, c.Target)
	}
	for _, ratio := range c.Ratios {
		if ratio.Target != nil {
			bounds = append(bounds, ratio.Target)
		}
	}
	return bounds
}

// Write puts the report and its charts into dir, as files whose names begin with name.
func (r *Report) Write(dir, name string) error {
	for _, chart := range []struct {
		name string
		draw func(*Report) string
	}{{"rates", ratesChart}, {"ratios", ratiosChart}, {"latency", latencyChart}} {
		path := filepath.Join(dir, name+"-"+chart.name+".svg")
		if err := os.WriteFile(path, []byte(chart.draw(r)), 0o644); err != nil {
			return fmt.Errorf("write chart: %w", err)
		}
		r.Files = append(r.Files, path)
	}
	path := filepath.Join(dir, name+".json")
	r.Files = append(r.Files, path)
	return measure.WriteJSON(path, r)
}
