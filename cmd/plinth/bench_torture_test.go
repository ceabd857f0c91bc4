package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
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
// uses, and checks all that they were told.
func TestTorture(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		replicas int
		start    func(testing.TB) *dbserver.Server
	}{{"sqlite", 1, nil}, {"postgres", 3, logtest.StartPostgres}, {"mariadb", 2, logtest.StartMariaDB}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			must(t, err)
			o := torture.Options{
				Command: []string{"env", asPlinth + "=1", self, "serve"}, Replicas: c.replicas, Clients: 6, Dir: keptTorture(t),
				For: time.Duration(tortureNumber(t, tortureSeconds, 25)) * time.Second, Seed: uint64(tortureNumber(t, tortureSeed, 1)),
				DSN: "sqlite://plinth.db", Progress: t.Output(),
			}
			if c.start != nil {
				server := c.start(t)
				o.DSN, o.Database = server.DSN(""), server
			}
			report, err := torture.Run(t.Context(), o)
			if report != nil {
				var text bytes.Buffer
				report.Write(&text)
				t.Logf("\n%s", &text)
			}
			must(t, err)
			if len(report.Broken) > 0 {
				t.Errorf("a guarantee is broken; make torture SEED=%d repeats the run", o.Seed)
			}
			if report.Calls[torture.Update] == 0 || report.Calls[torture.Pages] == 0 || report.Events == 0 || len(report.Faults) == 0 {
				t.Error("too few calls, events or faults to prove anything")
			}
		})
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
	t.Setenv(asPlinth, "1")
	var stdout, stderr bytes.Buffer
	if code := run([]string{"bench", "torture", "--seconds", "3", "--clients", "3", "--seed", "2", "--faults", "kill", "--out", t.TempDir()}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	for _, want := range []string{"sqlite, 1 replicas, seed 2", "kill ", "every guarantee held", "longest outage"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in %s", want, &stdout)
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
		{[]string{"--clients", "0"}, "--clients 0: write 1 or more"},
		{[]string{"--faults", "fire"}, `--faults: "fire": write some of kill, stop, `},
	} {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"bench", "torture"}, c.args...), &stdout, &stderr)
		if out := stderr.String(); code != 2 || strings.Count(out, "\n") != 1 || strings.Contains(out, "s3cret") || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, printed %s", c.args, code, out)
		}
	}
}
