package bench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/bench/figures"
)

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
