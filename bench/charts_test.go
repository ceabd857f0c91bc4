package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/bench/figures"
)

// TestCharts draws charts of unusual reports: without measurements, with one point, with zeros.
func TestCharts(t *testing.T) {
	zero := &Database{Name: "a<b>&\"", Figures: []Figure{{What: "x", Unit: "rows/s", Latency: &figures.Latency{}, Writers: 1}}}
	zero.add(Figure{What: "<y>", Unit: "events", Target: figures.AtMost(0)})
	zero.add(Figure{What: "z", Target: figures.AtLeast(1)})
	r := &Report{Databases: []*Database{zero, {Name: "empty"}}}
	for name, chart := range map[string]string{
		"throughput": throughputChart(r), "targets": targetsChart(r), "latency": latencyChart(r),
	} {
		checkXML(t, name, []byte(chart))
	}
}

func checkXML(t *testing.T, name string, b []byte) {
	d := xml.NewDecoder(bytes.NewReader(b))
	d.Strict = true
	elements := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s is not well-formed: %v", name, err)
		}
		if start, ok := token.(xml.StartElement); ok {
			elements++
			for _, a := range start.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s: %s has %s=%q", name, start.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	if elements < 10 {
		t.Errorf("%s has only %d elements", name, elements)
	}
}
