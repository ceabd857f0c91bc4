package beside

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/plinth-io/plinth/bench/measure"
)

// WriteTable prints the report for people: a block for each row, a line for each endpoint.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "plinth %s, %s, %s, %d CPUs, shared by load and endpoints\n", r.Plinth, r.Go, r.Platform, r.CPUs)
	if r.Interrupted {
		fmt.Fprintln(w, "INTERRUPTED: what follows is what was measured until then")
	}
	if r.Quick {
		fmt.Fprintln(w, "quick run: short rounds and few keys, to see that everything works; its figures are not compared with the targets")
	}
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	others := r.others()
	fmt.Fprintf(t, "\n\tMEASURED\tP50 / P99\t%s\t\n", strings.Join(beside(others), "\t"))
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t\t\t%s\t\n", row.What, strings.Repeat("\t", max(len(others)-1, 0)))
		for _, c := range row.Cells {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", c.Endpoint, c.value(row.Unit), c.latency(), strings.Join(c.ratios(others), "\t"), c.remark())
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// others returns the names of the endpoints beside plinth.
func (r *Report) others() (names []string) {
	for _, e := range r.Endpoints {
		if !e.Own {
			names = append(names, e.Name)
		}
	}
	return names
}

func beside(names []string) []string {
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
	return measure.Number(c.Value) + " " + unit
}

func (c *Cell) latency() string {
	if c.Latency == nil {
		return ""
	}
	return fmt.Sprintf("%s / %s ms", measure.Number(c.Latency.P50), measure.Number(c.Latency.P99))
}

// ratios returns the ratio to each other endpoint, and whether its target was met.
func (c *Cell) ratios(others []string) []string {
	cells := make([]string, len(others))
	for i, name := range others {
		for _, ratio := range c.Ratios {
			if ratio.To != name {
				continue
			}
			cells[i] = measure.Number(ratio.Ratio)
			if ratio.Target != nil {
				cells[i] += " (" + ratio.Target.text() + ")"
			}
		}
	}
	return cells
}

func (b *Bound) text() string {
	sign := "≥ "
	if b.AtMost {
		sign = "≤ "
	}
	sign += strconv.FormatFloat(b.Bound, 'f', -1, 64)
	switch {
	case b.Met == nil:
		return sign + " not judged"
	case *b.Met:
		return sign + " met"
	}
	return sign + " MISSED"
}

func (c *Cell) remark() string {
	var words []string
	if c.Target != nil {
		words = append(words, c.Target.text())
	}
	if c.Error != "" {
		words = append(words, c.Error)
	}
	if c.Note != "" {
		words = append(words, c.Note)
	}
	return strings.Join(words, "; ")
}
