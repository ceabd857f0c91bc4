package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/plinth-io/plinth/bench/figures"
)

// WriteTable prints the report for people, a block for each database.
func (r *Report) WriteTable(w io.Writer) error {
	note := fmt.Sprintf("server measurements: TLS, HTTP/2, %d requests at a time over %d connections, a list alone", concurrent, connections)
	if err := r.WriteHead(w, "server", note); err != nil {
		return err
	}
	for _, d := range r.Databases {
		fmt.Fprintf(w, "\n%s %s, %s\n", d.Name, d.Version, d.Settings)
		t := figures.Table{{"  WHAT", "MEASURED", "P50 / P99", "AGAINST", "RATIO", "TARGET", "VERDICT"}}
		for _, f := range d.Figures {
			t.Add("  "+f.What, f.value(), f.Latency.String(), f.against(), f.ratio(), f.target(), f.verdict())
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

func (f *Figure) value() string { return figures.Number(f.Value) + " " + f.Unit }

func (f *Figure) against() string {
	if f.Floor == "" {
		return ""
	}
	return figures.Number(f.Against) + " " + f.Unit + " " + f.Floor
}

func (f *Figure) ratio() string {
	if f.Floor == "" {
		return ""
	}
	return strconv.FormatFloat(f.Ratio, 'f', 2, 64)
}

func (f *Figure) target() string {
	switch {
	case f.Target == nil:
		return ""
	case f.Floor != "":
		return f.Target.String()
	}
	return f.Target.String() + " " + f.Unit
}

func (f *Figure) verdict() string {
	var words []string
	if f.Target != nil {
		words = append(words, f.Target.Verdict())
	}
	if f.Note != "" {
		words = append(words, "("+f.Note+")")
	}
	return strings.Join(words, " ")
}
