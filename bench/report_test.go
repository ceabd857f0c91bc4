package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/bench/figures"
)

func TestTargets(t *testing.T) {
	var d Database
	d.add(Figure{What: "a", Value: 50, Against: 100, Floor: "floor", Ratio: 0.5, Target: figures.AtLeast(0.6)})
	d.add(Figure{What: "b", Value: 50, Unit: "MiB", Target: figures.AtMost(120)})
	d.add(Figure{What: "c", Value: 1, Unit: "events", Target: figures.AtMost(0)})
	d.add(Figure{What: "d", Value: 0, Unit: "events", Target: figures.AtMost(0)})
	var met []bool
	for _, f := range d.Figures {
		met = append(met, *f.Target.Met)
		if headroom := f.Target.Headroom(f.judged()); (headroom >= 1) != *f.Target.Met || math.IsInf(headroom, 0) || math.IsNaN(headroom) {
			t.Errorf("%s: headroom %v, met %v", f.What, headroom, *f.Target.Met)
		}
	}
	if !slices.Equal(met, []bool{false, true, false, true}) {
		t.Errorf("met: %v", met)
	}
}

func TestTable(t *testing.T) {
	d := &Database{Name: "sqlite", Version: "3", Settings: "durable"}
	d.add(Figure{What: "store", Value: 5000, Unit: "rows/s", Against: 10000, Floor: "floor", Ratio: 0.5, Target: figures.AtLeast(0.6), Latency: &figures.Latency{P50: 0.5, P99: 2}})
	d.add(Figure{What: "memory", Value: 90, Unit: "MiB", Target: figures.AtMost(120), Note: "so far"})
	var b bytes.Buffer
	r := Report{Run: figures.Run{Plinth: "v1", Go: "go1", Platform: "linux/amd64", CPUs: 2}, Databases: []*Database{d}}
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"  store   5,000 rows/s  0.500 / 2 ms  10,000 rows/s floor  0.50   ≥ 0.6      MISSED",
		"  memory  90 MiB                                                  ≤ 120 MiB  met (so far)",
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("missing %q in\n%s", line, b.String())
		}
	}
}

// TestQuickTable checks that a quick run compares nothing with targets: not in the table, in the
// chart or in the list of missed targets.
func TestQuickTable(t *testing.T) {
	d := &Database{Name: "sqlite", unjudged: true}
	d.add(Figure{What: "start", Value: 0.9, Unit: "s", Target: figures.AtMost(0.5)})
	d.add(Figure{What: "memory", Value: 90, Unit: "MiB", Target: figures.AtMost(120), Note: "so far"})
	r := Report{Run: figures.Run{Quick: true}, Databases: []*Database{d}}
	var b bytes.Buffer
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"  start   0.900 s                              ≤ 0.5 s    not judged\n",
		"  memory  90 MiB                               ≤ 120 MiB  not judged (so far)\n",
		"not compared with the targets\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("missing %q in\n%s", line, b.String())
		}
	}
	chart := targetsChart(&r)
	if strings.Contains(chart, figures.Good) || strings.Contains(chart, figures.Bad) || !strings.Contains(chart, "quick run") {
		t.Errorf("the chart judges:\n%s", chart)
	}
}

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
