package figures

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	createTargets = []Target{{"sqlite", "etcd", AtLeast(1.5)}, {"postgres mysql", "kine", AtLeast(5)}}
	pageTargets   = []Target{{"", "etcd", AtMost(1)}, {"", "kine", AtMost(0.1)}}
	lossTargets   = []Target{{"", "", AtMost(0)}}
)

// sampleReport has two endpoints of plinth and two others, one of which failed in a row.
func sampleReport(quick bool) *Comparison {
	cells := func(values ...float64) (cells []*Cell) {
		for i, name := range []string{"sqlite", "postgres", "etcd", "kine-postgres"} {
			cells = append(cells, &Cell{Endpoint: name, measured: Series{rounds: []float64{values[i], values[i] * 2}}})
		}
		return cells
	}
	creates := &Row{What: "create", Unit: "/s", Targets: createTargets, Cells: cells(300, 100, 200, 10)}
	creates.Cells[0].measured.samples = []time.Duration{time.Millisecond, 3 * time.Millisecond}
	pages := &Row{What: "page", Unit: "ms", Less: true, Targets: pageTargets, Cells: cells(4, 2, 2, 100)}
	pages.Cells[3].Error = "no such luck"
	faults := &Row{What: "faults", Unit: "events", Less: true, Targets: lossTargets, Sum: true, Cells: cells(0, 1, 0, 7)}
	r := &Comparison{Run: Run{Plinth: "v1", Go: "go1", Platform: "linux/amd64", CPUs: 2, Quick: quick}, Rows: []*Row{creates, pages, faults, {What: "never made"}}}
	r.Finish([]Endpoint{{Name: "sqlite", Own: true}, {Name: "postgres", Own: true}, {Name: "etcd"}, {Name: "kine-postgres"}})
	return r
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := sampleReport(false).WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"plinth v1, go1, linux/amd64, 2 CPUs, shared by load and endpoints",
		"",
		"MEASURED P50 / P99 BY ETCD BY KINE-POSTGRES",
		"create",
		"sqlite 450 /s 1 / 3 ms 1.50 (≥ 1.5 met) 30",
		"postgres 150 /s 0.500 10 (≥ 5 met)",
		"etcd 300 /s",
		"kine-postgres 15 /s",
		"page",
		"sqlite 6 ms 2 (≤ 1 MISSED)",
		"postgres 3 ms 1 (≤ 1 met)",
		"etcd 3 ms",
		"kine-postgres failed no such luck",
		"faults",
		"sqlite 0 events ≤ 0 met",
		"postgres 3 events ≤ 0 MISSED",
		"etcd 0 events",
		"kine-postgres 21 events",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// TestQuickTable checks that a quick run is not compared with targets.
func TestQuickTable(t *testing.T) {
	var b bytes.Buffer
	if err := sampleReport(true).WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	if table := b.String(); strings.Contains(table, " met") || strings.Contains(table, "MISSED") || strings.Count(table, "not judged") != 6 {
		t.Errorf("a quick run judges:\n%s", table)
	}
}

// TestRelative has the pairs whose ratio is compared with a target.
func TestRelative(t *testing.T) {
	row := &Row{Targets: createTargets}
	for _, c := range []struct {
		own, other string
		judged     bool
	}{
		{"sqlite", "etcd", true}, {"sqlite", "etcd-2", true}, {"postgres", "etcd", false}, {"sqlite", "kine", false},
		{"postgres", "kine", true}, {"postgres", "kine-postgres", true}, {"postgres", "kine-mysql", false},
		{"mysql", "kine-mariadb", true}, {"mysql", "kine-mysql", true}, {"mysql", "other", false},
	} {
		if got := row.relative(c.own, c.other) != nil; got != c.judged {
			t.Errorf("%s beside %s: %v", c.own, c.other, got)
		}
	}
}

// TestWrite checks the files of reports with and without measurements.
func TestWrite(t *testing.T) {
	for _, r := range []*Comparison{sampleReport(false), {Run: Run{Interrupted: true}}} {
		dir := t.TempDir()
		if err := r.Write(dir, "etcd"); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"etcd-rates.svg", "etcd-ratios.svg", "etcd-latency.svg"} {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			checkXML(t, file, b)
		}
		b, err := os.ReadFile(filepath.Join(dir, "etcd.json"))
		if err != nil {
			t.Fatal(err)
		}
		var read Comparison
		if err := json.Unmarshal(b, &read); err != nil || len(read.Rows) != len(r.Rows) {
			t.Errorf("%d rows were read, %v", len(read.Rows), err)
		}
	}
}

func checkXML(t *testing.T, name string, b []byte) {
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s is not well-formed: %v", name, err)
		}
		if start, ok := token.(xml.StartElement); ok {
			for _, a := range start.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s: %s has %s=%q", name, start.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}
