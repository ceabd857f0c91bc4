package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/bench/torture"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// Variables for make torture, which goes on for longer.
const (
	tortureSeconds = "PLINTH_TEST_TORTURE_SECONDS"
	tortureSeed    = "PLINTH_TEST_TORTURE_SEED"
)

// TestTorture has clients work through faults of plinths and of database servers that only this test
// uses, and checks all that they were told. The runs wait most of the time, so all go on at once.
func TestTorture(t *testing.T) {
	t.Parallel()
	runs := []*tortureRun{
		{name: "sqlite", replicas: 1}, {name: "postgres", replicas: 3, start: logtest.StartPostgres}, {name: "mariadb", replicas: 2, start: logtest.StartMariaDB},
	}
	var running sync.WaitGroup
	for _, r := range runs {
		o := r.options(t)
		running.Go(func() { r.report, r.err = torture.Run(t.Context(), o) })
	}
	running.Wait()
	for _, r := range runs {
		t.Run(r.name, r.judge)
	}
}

// tortureRun is a run on one dialect.
type tortureRun struct {
	name     string
	replicas int
	start    func(testing.TB) *dbserver.Server // nil: there is no server

	report *torture.Report
	err    error
}

func (r *tortureRun) options(t *testing.T) torture.Options {
	program, err := built()
	must(t, err)
	o := torture.Options{
		Command: []string{program, "serve"}, Replicas: r.replicas, Clients: 4, Pause: 40 * time.Millisecond, Dir: keptTorture(t),
		For: time.Duration(tortureNumber(t, tortureSeconds, 45)) * time.Second, Seed: uint64(tortureNumber(t, tortureSeed, 1)),
		DSN: "sqlite://plinth.db", Progress: t.Output(),
	}
	if os.Getenv(tortureSeconds) != "" { // nothing else needs the machine
		o.Clients, o.Pause = 6, 10*time.Millisecond
	}
	if r.start != nil {
		server := r.start(t)
		o.DSN, o.Database = server.DSN(""), server
	}
	return o
}

func (r *tortureRun) judge(t *testing.T) {
	if r.report != nil {
		var text bytes.Buffer
		r.report.Write(&text)
		t.Logf("\n%s", &text)
	}
	must(t, r.err)
	if len(r.report.Broken) > 0 {
		t.Errorf("a guarantee is broken; make torture SEED=%d repeats the run", r.report.Seed)
	}
	if r.report.Calls[torture.Update] == 0 || r.report.Calls[torture.Pages] == 0 || r.report.Events == 0 || len(r.report.Faults) == 0 {
		t.Error("too few calls, events or faults to prove anything")
	}
}

// keptTorture returns a directory that stays if the test fails.
func keptTorture(t *testing.T) string {
	dir, err := os.MkdirTemp("", "plinth-torture-")
	must(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			os.RemoveAll(dir)
		}
	})
	return dir
}

func tortureNumber(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// TestBenchTorture runs the command.
func TestBenchTorture(t *testing.T) {
	code, stdout, stderr := runBuilt(t, "bench", "torture", "--seconds", "3", "--clients", "3", "--seed", "2", "--faults", "kill", "--out", t.TempDir())
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, want := range []string{"sqlite, 1 replicas, seed 2", "kill ", "every guarantee held", "longest outage"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in %s", want, stdout)
		}
	}
}

func TestBenchTortureRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--dsn", "oracle://u:s3cret@h/db"}, "begins with oracle://"},
		{[]string{"--replicas", "2"}, "a SQLite file is for one plinth at a time"},
		{[]string{"--replicas", "4", "--dsn", "postgres://u@h/db"}, "--replicas 4: write a number from 1 to 3"},
		{[]string{"--seconds", "0"}, "--seconds 0: write 1 or more"},
		{[]string{"--clients", "0"}, "--clients 0: write a number from 1 to 100"},
		{[]string{"--clients", "101"}, "--clients 101: write a number from 1 to 100"},
		{[]string{"--faults", "fire"}, `--faults: "fire": on sqlite write some of kill, stop, cut-clients, lose-answer, or none alone`},
		{[]string{"--faults", "kill,cut"}, `--faults: "cut": on sqlite write some of kill, `},
		{[]string{"--dsn", "postgres://u@h/db", "--faults", "kill-db"}, `--faults: "kill-db": on postgres write some of kill, `},
		{[]string{"--faults", "none,kill"}, `--faults: "none": `},
	} {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"bench", "torture"}, c.args...), &stdout, &stderr)
		if out := stderr.String(); code != 2 || strings.Count(out, "\n") != 1 || strings.Contains(out, "s3cret") || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, printed %s", c.args, code, out)
		}
	}
}
