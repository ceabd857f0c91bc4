package bench

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/plinth-io/plinth/bench/measure"
)

// WriteTable prints the report for people, a block for each database.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "plinth %s, %s, %s, %d CPUs, shared by load and server\n", r.Plinth, r.Go, r.Platform, r.CPUs)
	fmt.Fprintf(w, "server measurements: TLS, HTTP/2, %d requests at a time over %d connections, a list alone\n", concurrent, connections)
	if r.Quick {
		fmt.Fprintln(w, "quick run: short rounds and few objects, to see that everything works; its figures are not compared with the targets")
	}
	for _, d := range r.Databases {
		fmt.Fprintf(w, "\n%s %s, %s\n", d.Name, d.Version, d.Settings)
		if err := d.writeTable(w); err != nil {
			return err
		}
	}
	return nil
}

func (d *Database) writeTable(w io.Writer) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  WHAT\tMEASURED\tP50 / P99\tAGAINST\tRATIO\tTARGET\tVERDICT\t")
	for _, f := range d.Figures {
		cells := []string{"  " + f.What, f.value(), f.latency(), f.against(), f.ratio(), f.target(), f.verdict()}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
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

func (f *Figure) value() string { return measure.Number(f.Value) + " " + f.Unit }

func (f *Figure) latency() string {
	if f.Latency == nil {
		return ""
	}
	return fmt.Sprintf("%s / %s ms", measure.Number(f.Latency.P50), measure.Number(f.Latency.P99))
}

func (f *Figure) against() string {
	if f.Floor == "" {
		return ""
	}
	return measure.Number(f.Against) + " " + f.Unit + " " + f.Floor
}

func (f *Figure) ratio() string {
	if f.Floor == "" {
		return ""
	}
	return strconv.FormatFloat(f.Ratio, 'f', 2, 64)
}

func (f *Figure) target() string {
	if f.Target == nil {
		return ""
	}
	unit := ""
	if f.Floor == "" {
		unit = " " + f.Unit
	}
	sign := "≥ "
	if f.Target.AtMost {
		sign = "≤ "
	}
	return sign + strconv.FormatFloat(f.Target.Bound, 'f', -1, 64) + unit
}

func (f *Figure) verdict() string {
	var words []string
	switch {
	case f.Target == nil:
	case f.Target.Met == nil:
		words = append(words, "not judged")
	case *f.Target.Met:
		words = append(words, "met")
	default:
		words = append(words, "MISSED")
	}
	if f.Note != "" {
		words = append(words, "("+f.Note+")")
	}
	return strings.Join(words, " ")
}
