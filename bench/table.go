package bench

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
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

func (f *Figure) value() string { return number(f.Value) + " " + f.Unit }

func (f *Figure) latency() string {
	if f.Latency == nil {
		return ""
	}
	return fmt.Sprintf("%s / %s ms", number(f.Latency.P50), number(f.Latency.P99))
}

func (f *Figure) against() string {
	if f.Floor == "" {
		return ""
	}
	return number(f.Against) + " " + f.Unit + " " + f.Floor
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

// number writes v with three significant digits, or with all digits before the point in groups of
// three.
func number(v float64) string {
	decimals := 0
	switch {
	case v == float64(int64(v)):
	case v < 1:
		decimals = 3
	case v < 10:
		decimals = 2
	case v < 100:
		decimals = 1
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		return whole + "." + fraction
	}
	return whole
}
