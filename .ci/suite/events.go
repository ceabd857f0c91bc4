package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// event is one line of go test -json: go doc test2json and go help buildjson.
type event struct {
	Run        int // which go test it is of; suite adds it
	Time       time.Time
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Elapsed    float64
	Output     string
}

// suite collects events.
type suite struct {
	out      io.Writer
	quiet    bool
	mu       sync.Mutex // of all that follows, while tests run
	keep     *bufio.Writer
	packages map[packageRun]*testedPackage
	order    []*testedPackage // as they began
	builds   []string         // output of builds that failed
	spent    map[string]*spent
}

// packageRun is a package in one of several go tests, which may run side by side.
type packageRun struct {
	run  int
	name string
}

// testedPackage is the run of one test binary.
type testedPackage struct {
	name   string
	begun  time.Time
	wall   time.Duration
	cpu    time.Duration
	result string // pass, fail, skip; "" while it runs
	cached bool
	seed   string       // of -shuffle
	output bytes.Buffer // of no test
	tests  map[string]*test
	order  []*test
}

// test is a test or a subtest.
type test struct {
	name     string
	begun    time.Time
	paused   time.Time
	wall     time.Duration
	waiting  time.Duration // between t.Parallel and its turn
	result   string
	output   bytes.Buffer
	children []*test
}

// spent is what tests build or start, by the name that dialects/logtest/spent was told.
type spent struct {
	what  string
	times int
	total time.Duration
}

func newSuite(out io.Writer) *suite {
	return &suite{out: out, keep: bufio.NewWriter(io.Discard), packages: map[packageRun]*testedPackage{}, spent: map[string]*spent{}}
}

// read takes the lines of a run until the end. It prints what is not an event. Events of the run 0 say themselves of
// which run they are.
func (s *suite) read(run int, r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		s.addLine(run, line)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

func (s *suite) addLine(run int, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e event
	if rest, ok := bytes.CutPrefix(line, []byte("{")); ok && json.Unmarshal(line, &e) == nil && e.Action != "" {
		if run > 0 {
			e.Run = run
			line = fmt.Appendf(nil, `{"Run":%d,%s`, run, rest)
		}
		s.add(e)
	} else {
		s.print(string(line))
	}
	_, _ = s.keep.Write(line) // Flush has the error
}

func (s *suite) print(text string) {
	if !s.quiet {
		fmt.Fprint(s.out, text)
	}
}

func (s *suite) add(e event) {
	switch {
	case e.Action == "build-output":
		s.builds = append(s.builds, e.Output)
		s.print(e.Output)
	case e.Package == "":
	case e.Test == "":
		s.addToPackage(s.packageOf(e), e)
	default:
		p := s.packageOf(e)
		s.addToTest(p, p.testOf(e), e)
	}
}

// packageOf returns the run that goes on. Some packages are tested twice: with and without the race detector.
func (s *suite) packageOf(e event) *testedPackage {
	key := packageRun{e.Run, e.Package}
	p := s.packages[key]
	if p == nil || e.Action == "start" && p.result != "" {
		p = &testedPackage{name: e.Package, begun: e.Time, tests: map[string]*test{}}
		s.packages[key] = p
		s.order = append(s.order, p)
	}
	return p
}

// testOf makes the test if it is new, and its parents, which go test -run 'A/B' runs too.
func (p *testedPackage) testOf(e event) *test { return p.named(e.Test, e.Time) }

func (p *testedPackage) named(name string, at time.Time) *test {
	if t := p.tests[name]; t != nil {
		return t
	}
	t := &test{name: name, begun: at}
	p.tests[name] = t
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		// The name of a subtest may have slashes itself; then its parent is an ancestor.
		for ; i >= 0; i = strings.LastIndexByte(name[:i], '/') {
			if parent := p.tests[name[:i]]; parent != nil {
				parent.children = append(parent.children, t)
				return t
			}
		}
	}
	p.order = append(p.order, t)
	return t
}

func (s *suite) addToPackage(p *testedPackage, e event) {
	switch e.Action {
	case "output":
		s.addOutput(p, &p.output, e.Output)
	case "pass", "fail", "skip":
		p.result = e.Action
		p.wall = time.Duration(e.Elapsed * float64(time.Second))
		s.printPackage(p)
	}
}

func (s *suite) addToTest(p *testedPackage, t *test, e event) {
	switch e.Action {
	case "output":
		s.addOutput(p, &t.output, e.Output)
	case "pause":
		t.paused = e.Time
	case "cont":
		if !t.paused.IsZero() {
			t.waiting += e.Time.Sub(t.paused)
			t.paused = time.Time{}
		}
	case "pass", "fail", "skip":
		t.result = e.Action
		if t.wall = e.Time.Sub(t.begun); e.Time.IsZero() { // a cached result
			t.wall = time.Duration(e.Elapsed * float64(time.Second))
		}
		if e.Action != "fail" {
			t.output = bytes.Buffer{}
		}
	}
}

// outputLimit bounds what is kept of one test's output. What is beyond it is in the file of -o.
const outputLimit = 4 << 20

func (s *suite) addOutput(p *testedPackage, to *bytes.Buffer, text string) {
	if m := used.FindStringSubmatch(text); m != nil {
		p.cpu = seconds(m[1])
		return
	}
	if m := spentLine.FindStringSubmatch(text); m != nil {
		if s.spent[m[2]] == nil {
			s.spent[m[2]] = &spent{what: m[2]}
		}
		s.spent[m[2]].times++
		s.spent[m[2]].total += seconds(m[1])
		return
	}
	if seed, ok := strings.CutPrefix(text, "-test.shuffle "); ok {
		p.seed = strings.TrimSpace(seed)
	}
	if strings.HasPrefix(text, "ok  \t") && strings.Contains(text, "\t(cached)") {
		p.cached = true
	}
	if !frame(text) && to.Len() < outputLimit {
		to.WriteString(text)
	}
}

// frame tells lines that go test prints only with -v.
func frame(line string) bool {
	for _, prefix := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return line == "PASS\n" || line == "FAIL\n"
}

// code is the exit code of go test, as far as its events tell.
func (s *suite) code() int {
	if len(s.failed()) > 0 || len(s.builds) > 0 {
		return 1
	}
	return 0
}

// failed returns the packages that failed or have not ended.
func (s *suite) failed() (list []*testedPackage) {
	for _, p := range s.order {
		if p.result == "fail" || p.result == "" {
			list = append(list, p)
		}
	}
	return list
}
