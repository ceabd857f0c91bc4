package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
)

// Report is the result of one run.
type Report struct {
	Plinth    string      `json:"plinth"` // version
	Go        string      `json:"go"`
	Platform  string      `json:"platform"` // such as linux/amd64
	CPUs      int         `json:"cpus"`
	Begun     time.Time   `json:"begun"`
	Seconds   float64     `json:"seconds"`
	Quick     bool        `json:"quick"` // short rounds, fewer objects: a smoke test
	Databases []*Database `json:"databases"`

	// Files are the paths of what was written, the report itself among them.
	Files []string `json:"files"`
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

	Target  *Target          `json:"target,omitempty"` // of Ratio if there is one, else of Value
	Latency *measure.Latency `json:"latency_ms,omitempty"`
	Writers int              `json:"writers,omitempty"` // concurrent writers to the store
	Note    string           `json:"note,omitempty"`
}

// Target is the bound that a figure has to meet.
type Target struct {
	AtMost bool    `json:"at_most"` // else at least
	Bound  float64 `json:"bound"`
	Met    *bool   `json:"met,omitempty"` // nil: not judged, as in a quick run
}

func atLeast(bound float64) *Target { return &Target{Bound: bound} }
func atMost(bound float64) *Target  { return &Target{AtMost: true, Bound: bound} }

// add judges f, unless this is a quick run, and appends it.
func (d *Database) add(f Figure) {
	if f.Target != nil && !d.unjudged {
		f.Target.judge(f.judged())
	}
	d.Figures = append(d.Figures, f)
}

func (f *Figure) judged() float64 {
	if f.Floor != "" {
		return f.Ratio
	}
	return f.Value
}

// headroom is how many times better the figure is than its target. Below 1 the target is missed.
func (f *Figure) headroom() float64 {
	if !f.Target.AtMost {
		return f.judged() / f.Target.Bound
	}
	// The small number keeps the quotient finite if the target is 0 events.
	return (f.Target.Bound + 1e-9) / (f.judged() + 1e-9)
}

func (t *Target) judge(v float64) {
	met := v >= t.Bound
	if t.AtMost {
		met = v <= t.Bound
	}
	t.Met = &met
}

func (t *Target) missed() bool { return t.Met != nil && !*t.Met }

// Missed returns the lines that did not reach their target, as "sqlite: what".
func (r *Report) Missed() (missed []string) {
	for _, d := range r.Databases {
		for _, f := range d.Figures {
			if f.Target != nil && f.Target.missed() {
				missed = append(missed, d.Name+": "+f.What)
			}
		}
	}
	return missed
}

// write puts the report and its charts into dir.
func (r *Report) write(dir string) error {
	charts := map[string]string{
		"throughput.svg": throughputChart(r),
		"targets.svg":    targetsChart(r),
		"latency.svg":    latencyChart(r),
	}
	for _, name := range []string{"throughput.svg", "targets.svg", "latency.svg"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(charts[name]), 0o644); err != nil {
			return fmt.Errorf("write chart: %w", err)
		}
		r.Files = append(r.Files, path)
	}
	path := filepath.Join(dir, "report.json")
	r.Files = append(r.Files, path)
	return measure.WriteJSON(path, r)
}
