package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain makes the test binary the child that Run starts.
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

// TestRun measures everything once, quickly, and looks at what comes out.
func TestRun(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var progress bytes.Buffer
	report, err := Run(context.Background(), Options{
		Dir: dir, Quick: true, Child: []string{exe, "bench-child"}, Version: "test", Progress: &progress,
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

// checkFigures wants every line that has a target, with something measured in each.
func checkFigures(t *testing.T, r *Report) {
	targets := 0
	for _, f := range r.Databases[0].Figures {
		if f.Target != nil {
			targets++
		}
		// Memory may shrink while few watches are opened, or few definitions made: the
		// collector runs.
		mayBeNone := f.Unit == "events" || strings.HasSuffix(f.What, "idle watches") || strings.HasSuffix(f.What, "CRDs more")
		if f.Value <= 0 && !mayBeNone || f.Floor != "" && (f.Ratio <= 0 || f.Against <= 0) {
			t.Errorf("nothing was measured: %+v", f)
		}
		if f.What == "watch: events lost or repeated" && f.Value != 0 {
			t.Errorf("%v events were lost or came twice", f.Value)
		}
	}
	// Two of the store, start, memory three times, get, create, update with and without
	// tracking, apply, list twice, watch twice; of custom resources: a suite of definitions,
	// its memory and the start with it, first objects twice, list, get and create; of nodes:
	// their heartbeats, and of pods writes, gets and how many live.
	if targets != 27 {
		t.Errorf("%d lines have a target, 27 should", targets)
	}
}

// checkFiles wants the report and the charts, and nothing left besides.
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

func TestRunRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"unknown database": {Options{DSNs: []string{"oracle://x"}}, "DSN is of no known kind"},
		"child that fails": {Options{Quick: true, Child: []string{"sh", "-c", "echo no such luck >&2; exit 3"}}, "no such luck"},
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

// TestChild plays the measuring side by hand.
func TestChild(t *testing.T) {
	var out bytes.Buffer
	in := strings.NewReader(`{"do":"say what was used"} {"do":"dance"}`)
	if err := Child(context.Background(), in, &out); err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(&out)
	var used, refused answer
	if err := errors.Join(answers.Decode(&used), answers.Decode(&refused)); err != nil {
		t.Fatal(err)
	}
	if used.CPU <= 0 || used.RSS <= 0 || refused.Error != "dance: no such order" {
		t.Errorf("answers %+v, %+v", used, refused)
	}
}
