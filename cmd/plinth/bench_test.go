package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBench runs the command in this process; what it measures is this binary again,
// which asPlinth makes plinth.
func TestBench(t *testing.T) {
	t.Setenv(asPlinth, "1")
	t.Setenv("PLINTH_TEST_POSTGRES", "") // how bench takes to them is for package bench
	t.Setenv("PLINTH_TEST_MYSQL", "")
	out := filepath.Join(t.TempDir(), "out")
	var stdout, stderr bytes.Buffer
	if code := run([]string{"bench", "--quick", "--out", out}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	for _, want := range []string{"\nsqlite 3.", "store, 64 writers", "start to /readyz", filepath.Join(out, "targets.svg")} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
	if _, err := os.Stat(filepath.Join(out, "report.json")); err != nil {
		t.Error(err)
	}
}

func TestBenchRefuses(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run([]string{"bench", "--dsn", "oracle://u:s3cret@h/db"}, &stdout, &stderr)
	if out := stderr.String(); code != 2 || strings.Count(out, "\n") != 1 || strings.Contains(out, "s3cret") {
		t.Errorf("exit code %d, printed %s", code, out)
	}
}
