package main

import (
	"fmt"
	"strings"
)

// printPackage prints what go test prints at the end of a package: if it failed, the output of tests that failed
// and what the package said outside of tests; and the line with the result.
func (s *suite) printPackage(p *testedPackage) {
	var b strings.Builder
	if p.result == "fail" {
		for _, t := range p.blamed() {
			b.WriteString(t.text(""))
		}
	}
	for line := range strings.Lines(p.output.String()) {
		if p.result == "fail" || strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") {
			b.WriteString(line)
		}
	}
	s.print(b.String())
}

// blamed returns the tests that failed, and those that had not ended when the package did: a panic, a
// time-out or os.Exit ends them.
func (p *testedPackage) blamed() (list []*test) {
	for _, t := range p.order {
		if t.blamed() {
			list = append(list, t)
		}
	}
	return list
}

func (t *test) blamed() bool { return t.result == "fail" || t.result == "" && t.paused.IsZero() }

// text is a test's output and that of its subtests to blame, below the line that names it.
func (t *test) text(indent string) string {
	var b strings.Builder
	own, verdict := t.lines()
	if verdict == "" {
		verdict = fmt.Sprintf("--- UNFINISHED: %s\n", t.name)
	}
	b.WriteString(indent + verdict)
	for _, line := range own {
		b.WriteString(indent + line)
	}
	for _, c := range t.children {
		if c.blamed() {
			b.WriteString(c.text(indent + "    "))
		}
	}
	return b.String()
}

// lines parts the line with the verdict, such as --- FAIL: TestA (0.01s), from the rest.
func (t *test) lines() (own []string, verdict string) {
	for line := range strings.Lines(t.output.String()) {
		if trimmed := strings.TrimLeft(line, " "); strings.HasPrefix(trimmed, "--- FAIL: "+t.name+" (") {
			verdict = trimmed
		} else {
			own = append(own, line)
		}
	}
	return own, verdict
}
