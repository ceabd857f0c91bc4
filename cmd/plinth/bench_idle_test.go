package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchIdle measures the program, for a moment.
func TestBenchIdle(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := runBuilt(t, "bench", "idle", "--dsn", "sqlite://plinth.db", "--nodes", "3", "--duration", "3s", "--out", out)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != 3 {
		t.Fatalf("the table is\n%s", stdout)
	}
	for i, delay := range []string{"0s", "1s"} {
		if row := strings.Fields(lines[i+1]); strings.Join(row[:3], " ") != "plinth on sqlite" || row[3] != "3" || row[4] != delay || row[5] < "1" {
			t.Errorf("row %q", lines[i+1])
		}
	}
	if left, err := filepath.Glob(filepath.Join(out, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchIdleUsage(t *testing.T) {
	for _, c := range []struct{ args, has string }{
		{"--dsn none", "leaves nothing to measure"},
		{"--dsn oracle://a", "write sqlite://"},
		{"--nodes 0", "write numbers from 1"},
		{"--duration 1ms", "at least 1s"},
		{"--kubeconfig etcd", "write NAME=FILE"},
		{"--dsn none --kubeconfig etcd=a --pid sqlite=1", `nothing is called "sqlite"; there are etcd`},
		{"--pid sqlite=x", "write NAME=PID"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(append([]string{"bench", "idle"}, strings.Fields(c.args)...), &stdout, &stderr); code == 0 || !strings.Contains(stderr.String(), c.has) {
			t.Errorf("%s: %d, %s", c.args, code, stderr.String())
		}
	}
}
