package figures

import (
	"fmt"
	"io"
	"strings"
)

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
