package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// failureLines is how long the summary of what failed may be; make adds a few lines of its own.
const failureLines = 90

// failures says what failed: builds, tests, and packages without a test to blame. It is "" if nothing failed.
func (s *suite) failures() string {
	var parts [][]string
	if len(s.builds) > 0 {
		parts = append(parts, linesOf(strings.Join(s.builds, "")))
	}
	var names []string
	for _, p := range s.failed() {
		blamed := p.blamed()
		for _, t := range blamed {
			parts = append(parts, linesOf(short(p.name)+": "+t.text("")))
			names = append(names, t.leaves(short(p.name))...)
		}
		if len(blamed) == 0 || p.result == "" {
			names = append(names, short(p.name)+p.unless("fail"))
			parts = append(parts, linesOf(short(p.name)+p.unless("fail")+":\n"+p.output.String()))
		}
		if p.seed != "" {
			names = append(names, "(this order of "+short(p.name)+"'s tests again: go test -shuffle="+p.seed+")")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nFailed:\n")
	for _, n := range clip(names, failureLines/4) {
		b.WriteString("  " + n + "\n")
	}
	room := failureLines - 2 - min(len(names), failureLines/4)
	for i, p := range parts {
		if room < 4 {
			fmt.Fprintf(&b, "(%d more above)\n", len(parts)-i)
			break
		}
		kept := clip(p, max(4, room/(len(parts)-i)))
		room -= len(kept)
		b.WriteString(strings.Join(kept, "\n") + "\n")
	}
	return b.String()
}

// leaves names the deepest tests that failed, which are what is to be mended.
func (t *test) leaves(in string) (names []string) {
	for _, c := range t.children {
		if c.blamed() {
			names = append(names, c.leaves(in)...)
		}
	}
	if len(names) == 0 {
		names = []string{in + " " + t.name}
	}
	return names
}

func linesOf(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

// says matches a line that a test prints, not a server that it has started.
var says = regexp.MustCompile(`^\s+\w+_test\.go:\d+: `)

// clip keeps the first and the last of more than n lines: a test names its fault early, a panic and t.Fatal
// late. A report of the race detector, or what a test says, stands wherever it happened, amid the log of a
// server: its beginning is kept too.
func clip(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	head, tail := n/2, n-n/2-1
	report := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "WARNING: DATA RACE") })
	if report < 0 {
		report = slices.IndexFunc(lines, says.MatchString)
	}
	if report < head || n < 10 {
		return slices.Concat(lines[:head], leftOut(len(lines)-head-tail), lines[len(lines)-tail:])
	}
	part := (n - 2) / 3
	report = min(report, len(lines)-2*part)
	return slices.Concat(lines[:part], leftOut(report-part), lines[report:report+part],
		leftOut(len(lines)-report-2*part), lines[len(lines)-part:])
}

// leftOut is a line for n lines; none for none.
func leftOut(n int) []string {
	if n <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("    … %d lines left out, which stand above …", n)}
}
