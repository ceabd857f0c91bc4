package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Run says where and when something was measured. Each report has one.
type Run struct {
	Plinth      string    `json:"plinth"` // version
	Go          string    `json:"go"`
	Platform    string    `json:"platform"` // such as linux/amd64
	CPUs        int       `json:"cpus"`
	Begun       time.Time `json:"begun"`
	Seconds     float64   `json:"seconds"`
	Quick       bool      `json:"quick"`                 // short rounds, fewer objects: a smoke test
	Interrupted bool      `json:"interrupted,omitempty"` // not all was measured

	// Files are the paths of what was written, the report itself among them.
	Files []string `json:"files"`
}

// About returns r, for reports that have one.
func (r *Run) About() *Run { return r }

// NewRun returns a run on this machine, of a version of plinth.
func NewRun(version string, begun time.Time, quick bool) Run {
	return Run{
		Plinth: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs: runtime.NumCPU(), Begun: begun, Quick: quick,
	}
}

// WriteHead prints what people should know before a table: the machine, which the load shares with others, and
// notes.
func (r *Run) WriteHead(w io.Writer, others string, notes ...string) error {
	lines := append([]string{fmt.Sprintf("plinth %s, %s, %s, %d CPUs, shared by load and %s", r.Plinth, r.Go, r.Platform, r.CPUs, others)}, notes...)
	if r.Interrupted {
		lines = append(lines, "INTERRUPTED: what follows is what was measured until then")
	}
	if r.Quick {
		lines = append(lines, "quick run: short rounds and few objects, to see that everything works; its figures say little and are not compared with the targets")
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// Subtitle is the line below the title of a chart, about the run and about what else is to be said.
func (r *Run) Subtitle(more ...string) string {
	parts := []string{"plinth " + r.Plinth, r.Go, r.Platform, fmt.Sprintf("%d CPUs", r.CPUs), r.Begun.UTC().Format("2006-01-02")}
	parts = append(parts, more...)
	if r.Quick {
		parts = append(parts, "quick run: not to be judged by")
	}
	if r.Interrupted {
		parts = append(parts, "interrupted")
	}
	return strings.Join(parts, ", ")
}

// Drawing is a chart and the name of its file.
type Drawing struct{ File, SVG string }

// Save writes drawings and then the report, which has this run in it, to files in dir.
func (r *Run) Save(dir, file string, report any, drawings ...Drawing) error {
	for _, d := range drawings {
		path := filepath.Join(dir, d.File)
		if err := os.WriteFile(path, []byte(d.SVG), 0o644); err != nil {
			return fmt.Errorf("write chart: %w", err)
		}
		r.Files = append(r.Files, path)
	}
	path := filepath.Join(dir, file)
	r.Files = append(r.Files, path)
	b, err := json.MarshalIndent(report, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
