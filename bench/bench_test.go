package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/bench/measure"
)

// TestMain makes this test binary the child that Run starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "bench-child" {
		if err := Child(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestRunQuick measures everything once, quickly, and checks the report and the files.
func TestRunQuick(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var progress bytes.Buffer
	report, err := Run(context.Background(), measure.Options{
		DSNs: []string{"sqlite://plinth.db"}, Dir: dir, Quick: true, Command: []string{exe, "bench-child"}, Version: "test", Progress: &progress,
	})
	if err != nil {
		t.Fatal(err)
	}
	checkFigures(t, report)
	checkFiles(t, dir, report)
	if !strings.Contains(progress.String(), "sqlite: plinth over HTTPS: watch") {
		t.Errorf("progress does not say what is measured: %q", progress.String())
	}
	var table bytes.Buffer
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
}

// checkFigures checks that each line with a target is there and has a measurement.
func checkFigures(t *testing.T, r *Report) {
	targets := 0
	for _, f := range r.Databases[0].Figures {
		if f.Target != nil {
			targets++
			if f.Target.Met != nil {
				t.Errorf("a quick run judges: %+v", f)
			}
		}
		if f.Value < 0 || strings.HasPrefix(f.What, "resident memory") && f.Unit != "MiB" {
			t.Errorf("%s is %s", f.What, f.value())
		}
		// Memory may shrink while few watches are opened, or few definitions made: the
		// collector runs.
		mayBeNone := f.Unit == "events" || strings.HasSuffix(f.What, " more")
		if f.Value <= 0 && !mayBeNone || f.Floor != "" && (f.Ratio <= 0 || f.Against <= 0) {
			t.Errorf("nothing was measured: %+v", f)
		}
		if f.What == "watch: events lost or repeated" && f.Value != 0 {
			t.Errorf("%v events were lost or came twice", f.Value)
		}
	}
	// Two of the store, start, memory four times, get, create, update with and without
	// tracking, apply twice, list twice, watch three times; of custom resources: a suite of definitions,
	// its memory and the start with it, first objects twice, list, get and create; of nodes:
	// their heartbeats, and of pods writes, gets and how many live; of rights: a decision, and get,
	// list, update and create of a user with a role.
	if targets != 35 {
		t.Errorf("%d lines have a target, 35 should", targets)
	}
}

// checkFiles checks that the report and the charts are there, and no other files.
func checkFiles(t *testing.T, dir string, r *Report) {
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) != len(r.Files) {
		t.Errorf("directory has %v, report names %v, %v", found, r.Files, err)
	}
	for _, path := range r.Files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(path) == ".svg" {
			checkXML(t, path, b)
		} else if err := json.Unmarshal(b, new(Report)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		o    measure.Options
		want string
	}{
		"unknown database": {measure.Options{DSNs: []string{"oracle://x"}}, "begins with oracle://, which is not known"},
		"child that fails": {measure.Options{DSNs: []string{"sqlite://x"}, Quick: true, Command: []string{"sh", "-c", "echo no such luck >&2; exit 3"}}, "no such luck"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Dir = t.TempDir()
			_, err := Run(context.Background(), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(c.o.Dir, "scratch-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
