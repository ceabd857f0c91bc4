package bench

import "github.com/plinth-io/plinth/bench/figures"

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
