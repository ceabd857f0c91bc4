package main

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asTimed {
		os.Exit(timed(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// module writes files, parted as in txtar, into a directory.
func module(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, part := range strings.Split(text, "-- ")[1:] {
		name, content, _ := strings.Cut(part, " --\n")
		write(t, filepath.Join(dir, filepath.FromSlash(name)), content)
	}
	return dir
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

const faulty = `
-- go.mod --
module example.org/faulty

go 1.26
-- good/good_test.go --
package good

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

func TestQuiet(t *testing.T) { t.Log("said by a test that passed"); fmt.Println("printed by a test that passed") }

func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestBusy(t *testing.T) {
	fmt.Println("spent 1.50s building a thing")
	for begun := used(); used()-begun < 600*time.Millisecond; {
	}
	t.Run("part", func(t *testing.T) { t.Parallel() })
}
-- bad/bad_test.go --
package bad

import "testing"

func TestOuter(t *testing.T) {
	t.Log("outer's own")
	t.Run("fine", func(t *testing.T) { t.Log("not to be seen") })
	t.Run("a/b", func(t *testing.T) {
		for i := range 300 { t.Log("line", i) }
		t.Error("the fault itself")
	})
}
func TestFine(t *testing.T) { t.Log("not to be seen") }
-- panics/panics_test.go --
package panics

import "testing"

func TestPanics(t *testing.T) { panic("out of order") }
-- exits/exits_test.go --
package exits

import ("testing"; "os"; "fmt")

func TestMain(m *testing.M) { fmt.Println("no database"); os.Exit(3) }
func TestNothing(t *testing.T) {}
-- late/late_test.go --
package late

import ("flag"; "testing"; "time")

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.timeout", "1s")
	m.Run()
}
func TestLate(t *testing.T) { time.Sleep(time.Hour) }
-- unbuilt/unbuilt_test.go --
package unbuilt

import "testing"

func TestUnbuilt(t *testing.T) { undeclared() }
-- unknown/unknown_test.go --
package unknown

import _ "example.org/no/such"
-- none/none.go --
package none
`

// TestRun runs go test on packages that fail in all ways there are.
func TestRun(t *testing.T) {
	t.Chdir(module(t, faulty))
	kept := filepath.Join(t.TempDir(), "kept.json")
	out, code := suiteOf(t, kept, "go", "test", "-vet=off", "-shuffle=7", "./...")
	if code != 1 {
		t.Errorf("the exit code is %d", code)
	}
	live, tables, _ := strings.Cut(out, "\nTime by package")
	tables, failures, _ := strings.Cut(tables, "\nFailed:\n")
	for _, want := range []string{
		"ok  \texample.org/faulty/good\t", "?   \texample.org/faulty/none\t[no test files]\n",
		"--- FAIL: TestOuter (", "outer's own", "    --- FAIL: TestOuter/a/b (", "line 150\n", "the fault itself", "FAIL\texample.org/faulty/bad\t",
		"panic: out of order", "no database\n", "test timed out after 1s", "undefined: undeclared", "FAIL\texample.org/faulty/unbuilt [build failed]\n",
	} {
		if !strings.Contains(live, want) {
			t.Errorf("while the tests ran, suite has not printed %q", want)
		}
	}
	for _, unwanted := range []string{"not to be seen", "by a test that passed", "=== RUN", "spent 1.50s", "of the processors", "PASS\n", "-test.shuffle 7\nok"} {
		if strings.Contains(live, unwanted) {
			t.Errorf("while the tests ran, suite has printed %q", unwanted)
		}
	}
	for _, want := range []string{"example.org/faulty/good TestBusy", " 1  building a thing", "example.org/faulty/late (fail)", "linked 5 programs"} {
		if !strings.Contains(tables, want) {
			t.Errorf("the tables have no %q:\n%s", want, tables)
		}
	}
	for _, want := range []string{
		"  example.org/faulty/bad TestOuter/a/b\n", "  (this order of example.org/faulty/bad's tests again: go test -shuffle=7)\n", "  example.org/faulty/panics TestPanics\n", "  example.org/faulty/exits\n", "  example.org/faulty/late TestLate\n",
		"undefined: undeclared", "no required module provides package example.org/no/such", "the fault itself", "lines left out", "panic: out of order", "no database", "test timed out after 1s",
	} {
		if !strings.Contains(failures, want) {
			t.Errorf("the failures have no %q", want)
		}
	}
	if n := strings.Count(failures, "\n"); n > failureLines {
		t.Errorf("the failures take %d lines:\n%s", n, failures)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}

	// The file says the same again, without what was compiled.
	var again bytes.Buffer
	s := newSuite(&again)
	if err := readFile(s, kept); err != nil {
		t.Fatal(err)
	}
	s.conclude(nil)
	if _, later, _ := strings.Cut(again.String(), "\nFailed:\n"); later != failures || s.code() != 1 {
		t.Errorf("read from the file, with the code %d:\n%s", s.code(), &again)
	}
}

// TestRunPasses also has a package's processor time, and go test's cache.
func TestRunPasses(t *testing.T) {
	t.Chdir(module(t, faulty))
	out, code := suiteOf(t, "", "go", "test", "./good")
	if code != 0 || strings.Contains(out, "Failed") {
		t.Errorf("code %d:\n%s", code, out)
	}
	_, rows, _ := strings.Cut(out, "package\n")
	for line := range strings.Lines(rows) {
		if f := strings.Fields(line); len(f) == 5 && f[4] == "all" {
			if cpu, err := strconv.ParseFloat(f[1], 64); err != nil || cpu < 0.6 {
				t.Errorf("a test that uses a processor for 0.6 s has used %s s", f[1])
			}
			return
		}
	}
	t.Errorf("no row for all:\n%s", out)
}

// TestReadCached has a package's result in go test's cache, a test that waited for its turn, and a line that is
// no event.
func TestReadCached(t *testing.T) {
	var out bytes.Buffer
	s := newSuite(&out)
	if err := s.read(0, strings.NewReader(`withservers: a line of another program
{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestA"}
{"Action":"pass","Package":"a","Test":"TestA","Elapsed":9}
{"Action":"output","Package":"a","Output":"ok  \ta\t(cached)\n"}
{"Action":"pass","Package":"a","Elapsed":0}
{"Time":"2026-01-02T03:04:00Z","Action":"run","Package":"b","Test":"TestB"}
{"Time":"2026-01-02T03:04:01Z","Action":"pause","Package":"b","Test":"TestB"}
{"Time":"2026-01-02T03:04:06Z","Action":"cont","Package":"b","Test":"TestB"}
{"Time":"2026-01-02T03:04:08Z","Action":"pass","Package":"b","Test":"TestB","Elapsed":3}
{"Time":"2026-01-02T03:04:08Z","Action":"pass","Package":"b","Elapsed":8}
`)); err != nil {
		t.Fatal(err)
	}
	s.conclude(nil)
	for _, want := range []string{"withservers: a line of another program\n", "ok  \ta\t(cached)\n", "1 packages whose results go test had cached", "  3.0      5.0  b TestB\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "TestA") || s.code() != 0 {
		t.Errorf("the code is %d of\n%s", s.code(), &out)
	}
}

// TestReadTwice has a package that fails with the race detector, and passes when some of its tests run without it.
func TestReadTwice(t *testing.T) {
	var out bytes.Buffer
	s := newSuite(&out)
	if err := s.read(0, strings.NewReader(`{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestA"}
{"Action":"output","Package":"a","Test":"TestA","Output":"the fault\n"}
{"Action":"fail","Package":"a","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"a","Output":"suite: 3.00s of the processors\n"}
{"Action":"fail","Package":"a","Elapsed":4}
{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestB"}
{"Action":"pass","Package":"a","Test":"TestB","Elapsed":1}
{"Action":"output","Package":"a","Output":"suite: 2.00s of the processors\n"}
{"Action":"pass","Package":"a","Elapsed":5}
`)); err != nil {
		t.Fatal(err)
	}
	s.conclude(nil)
	for _, want := range []string{"  4.0  3.0      1      0.0  a (fail)\n", "  5.0  2.0      1      0.0  a\n", "  9.0  5.0      2      0.0  all\n", "Failed:\n  a TestA\n", "the fault"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if s.code() != 1 {
		t.Errorf("the code is %d", s.code())
	}
}

// TestLanes tests a package twice at once, in one of them with a failure, and has the file tell the two apart.
func TestLanes(t *testing.T) {
	t.Chdir(module(t, `
-- go.mod --
module example.org/twice

go 1.26
-- a_test.go --
package twice

import ("os"; "testing"; "time")

// meet waits for the other process.
func meet(t *testing.T, own, other string) {
	if err := os.WriteFile(own, nil, 0o600); err != nil { t.Fatal(err) }
	for {
		if _, err := os.Stat(other); err == nil { return }
		time.Sleep(time.Millisecond)
	}
}
func TestA(t *testing.T) { meet(t, "a", "b"); t.Error("the fault") }
func TestB(t *testing.T) { meet(t, "b", "a") }
`))
	var b bytes.Buffer
	s := newSuite(&b)
	kept, err := os.Create(filepath.Join(t.TempDir(), "kept.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	s.keep = bufio.NewWriter(kept)
	goTest := []string{"go", "test", "-vet=off", "."}
	_, code, err := runLanes(s, [][][]string{{append(goTest, "-run=TestA")}, {append(goTest, "-run=TestB")}})
	if err != nil || code != 1 || s.keep.Flush() != nil {
		t.Errorf("code %d, %v", code, err)
	}
	again := newSuite(&bytes.Buffer{})
	if err := readFile(again, kept.Name()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*suite{s, again} {
		var got []string
		for _, p := range s.order {
			for name := range p.tests {
				got = append(got, name+" "+p.result)
			}
		}
		slices.Sort(got)
		if d := cmp.Diff([]string{"TestA fail", "TestB pass"}, got); d != "" {
			t.Error(d)
		}
	}
	if t.Failed() {
		t.Logf("%s", &b)
	}
}

// suiteOf runs a command as main does.
func suiteOf(t *testing.T, keep string, args ...string) (out string, code int) {
	t.Helper()
	var b bytes.Buffer
	s := newSuite(&b)
	graph := filepath.Join(t.TempDir(), "actions.json")
	args, err := instrument(args, 2, graph)
	if err != nil {
		t.Fatal(err)
	}
	if keep != "" {
		f, err := os.Create(keep)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s.keep = bufio.NewWriter(f)
	}
	if code, err = runCommand(s, 1, args); err != nil {
		t.Fatal(err)
	}
	if err := s.keep.Flush(); err != nil {
		t.Fatal(err)
	}
	actions, err := os.ReadFile(graph)
	if err != nil {
		t.Fatal(err)
	}
	s.conclude(compiledBy(actions))
	return b.String(), code
}
