package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/bench/scalebench"
)

// TestBenchScale measures the program, with a thousand and two thousand
// objects.
func TestBenchScale(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := runBuilt(t, "bench", "scale", "--quick", "--dsn", "sqlite://plinth.db", "--objects", "2000", "--memory", "300MiB", "--out", out)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	t.Logf("\n%s", stdout)
	if !strings.Contains(stderr, "sqlite: 2,000 objects are measured") {
		t.Errorf("progress is %s", stderr)
	}
	b, err := os.ReadFile(filepath.Join(out, "scale.json"))
	must(t, err)
	var report scalebench.Report
	must(t, json.Unmarshal(b, &report))
	if len(report.Databases) != 1 || len(report.Databases[0].Rows) != 14 || !slices.Equal(report.Databases[0].Counts, []int{1000, 2000}) || report.Memory != "300MiB" {
		t.Fatalf("the report is %s", b)
	}
	for _, row := range report.Databases[0].Rows {
		if len(row.Values) != 2 || slices.Min(row.Values) <= 0 {
			t.Errorf("%s: %v", row.What, row.Values)
		}
	}
	if found, err := filepath.Glob(filepath.Join(out, "*")); err != nil || len(found) != len(report.Files) || len(found) != 4 {
		t.Errorf("directory has %v, report names %v, %v", found, report.Files, err)
	}
	for _, file := range report.Files {
		if b, err := os.ReadFile(file); err != nil || strings.Contains(string(b), "NaN") || strings.Contains(string(b), "Inf") {
			t.Errorf("%s: %v, %s", file, err, b)
		}
	}
}

func TestBenchScaleRefuses(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--dsn oracle://u:s3cret@h/db", "begins with oracle://"},
		{"--objects 10", "--objects: 10: write a multiple of 1000"},
		{"--objects 1001", "write a multiple of 1000"},
		{"--objects 20000000", "write a multiple of 1000 up to 10000000"},
		{"--memory 1MiB", "--memory 1MiB: write at least 128 MiB"},
		{"--objects x", "--objects"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"bench", "scale"}, strings.Fields(c.args)...), &stdout, &stderr)
		if out := stderr.String(); code != 2 || strings.Count(out, "\n") != 1 || strings.Contains(out, "s3cret") || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, printed %s", c.args, code, out)
		}
	}
}

func TestScaleCounts(t *testing.T) {
	for most, want := range map[int][]int{1000: {1000}, 100_000: {1000, 10_000, 100_000}, 300_000: {1000, 10_000, 100_000, 300_000}} {
		if got := scaleCounts(most); !slices.Equal(got, want) {
			t.Errorf("up to %d: %v", most, got)
		}
	}
}
