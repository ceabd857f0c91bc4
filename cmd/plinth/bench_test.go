package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/bench/measure"
)

// TestBench runs the command.
func TestBench(t *testing.T) {
	t.Setenv("PLINTH_TEST_POSTGRES", "") // package bench tests the other databases
	t.Setenv("PLINTH_TEST_MYSQL", "")
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := runBuilt(t, "bench", "--quick", "--out", out)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if want := "Measuring sqlite, which takes about 10 seconds. Charts and figures will be in " + out + ".\n"; !strings.Contains(stderr, want) {
		t.Errorf("no %q in %s", want, stderr)
	}
	for _, unwanted := range []string{"MISSED", " met", " MB", " -0"} {
		if strings.Contains(stdout, unwanted) {
			t.Errorf("%q in\n%s", unwanted, stdout)
		}
	}
	for _, want := range []string{"\nsqlite 3.", "store, 64 writers", "start to /readyz", filepath.Join(out, "targets.svg")} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
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

func TestAnnounceBench(t *testing.T) {
	for _, c := range []struct {
		quick bool
		want  string
	}{
		{false, "Measuring sqlite, postgres, which takes about 10 minutes. Charts and figures will be in out.\n"},
		{true, "Measuring sqlite, postgres, which takes about 20 seconds. Charts and figures will be in out.\n"},
	} {
		o := measure.Options{DSNs: []string{"sqlite://a.db", "postgres://u@h/db"}, Quick: c.quick, Dir: "out"}
		if got := announceBench(&o); got != c.want {
			t.Errorf("quick is %v: %s", c.quick, got)
		}
	}
}
