package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// What the tables show at most, and at least.
const (
	rowsOfTests   = 30
	leastWall     = time.Second
	leastSlowTest = 500 * time.Millisecond
)

// conclude prints the tables, and last what failed.
func (s *suite) conclude(c *compiled) {
	if len(s.order) > 0 {
		s.printTables(c)
	}
	fmt.Fprint(s.out, s.failures())
}

func (s *suite) printTables(c *compiled) {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(s.out, "\nTime by package, in seconds. wall: from its start to its end; cpu: of the test binary and of what it has started and\nwaited for; waiting: of all its tests, between t.Parallel and their turn.\n\n")
	s.packageRows(w)
	w.Flush()
	fmt.Fprintf(s.out, "\nThe slowest tests, and the slowest subtest of each. busy: without waiting, and the sum of all subtests.\n\n")
	s.testRows(w)
	w.Flush()
	if len(s.spent) > 0 {
		fmt.Fprintf(s.out, "\nWhat tests built and started, in seconds of wall.\n\n")
		s.spentRows(w)
		w.Flush()
	}
	if c != nil {
		fmt.Fprintf(s.out, "\nBefore the tests, go test has %s.\n", c)
	}
}

func (s *suite) packageRows(w *tabwriter.Writer) {
	fmt.Fprintf(w, "wall\tcpu\ttests\twaiting\t  package\n")
	var total, small testedPackage
	var tests, smallOnes, cachedOnes int
	var waiting, smallWaiting time.Duration
	sorted := slices.SortedStableFunc(slices.Values(s.order), func(a, b *testedPackage) int { return cmp.Compare(b.wall, a.wall) })
	for _, p := range sorted {
		if p.cached {
			cachedOnes++
			continue
		}
		total.wall, total.cpu = total.wall+p.wall, total.cpu+p.cpu
		tests, waiting = tests+len(p.tests), waiting+p.waiting()
		if p.wall < leastWall {
			if len(p.tests) > 0 {
				smallOnes++
			}
			small.wall, small.cpu, smallWaiting = small.wall+p.wall, small.cpu+p.cpu, smallWaiting+p.waiting()
			continue
		}
		row(w, p.wall, p.cpu, len(p.tests), p.waiting(), short(p.name)+p.unless("pass"))
	}
	if smallOnes > 0 {
		row(w, small.wall, small.cpu, 0, smallWaiting, fmt.Sprintf("%d packages of less than a second", smallOnes))
	}
	row(w, total.wall, total.cpu, tests, waiting, "all")
	if cachedOnes > 0 {
		fmt.Fprintf(w, "\t\t\t\t  %d packages whose results go test had cached\n", cachedOnes)
	}
}

func row(w *tabwriter.Writer, wall, cpu time.Duration, tests int, waiting time.Duration, name string) {
	count := ""
	if tests > 0 {
		count = fmt.Sprint(tests)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t  %s\n", inSeconds(wall), inSeconds(cpu), count, inSeconds(waiting), name)
}

// unless names the result if it is another.
func (p *testedPackage) unless(result string) string {
	switch p.result {
	case result:
		return ""
	case "":
		return " (not ended)"
	}
	return " (" + p.result + ")"
}

func (p *testedPackage) waiting() (sum time.Duration) {
	for _, t := range p.tests {
		sum += t.waiting
	}
	return sum
}

func (s *suite) testRows(w *tabwriter.Writer) {
	type slow struct {
		p *testedPackage
		t *test
	}
	var list []slow
	for _, p := range s.order {
		for _, t := range p.order {
			if !p.cached && t.busy() >= leastSlowTest {
				list = append(list, slow{p, t})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b slow) int { return cmp.Compare(b.t.busy(), a.t.busy()) })
	fmt.Fprintf(w, "busy\twaiting\t  test\n")
	for _, l := range list[:min(len(list), rowsOfTests)] {
		of := ""
		if worst := l.t.slowest(); worst != l.t {
			of = fmt.Sprintf(" (%s %s)", strings.TrimPrefix(worst.name, l.t.name+"/"), inSeconds(worst.busy()))
		}
		fmt.Fprintf(w, "%s\t%s\t  %s %s%s\n", inSeconds(l.t.busy()), inSeconds(l.t.allWaiting()), short(l.p.name), l.t.name, of)
	}
}

// busy is how long a test and its subtests have run, together. A test waits for its parallel subtests while
// they wait for their turn; that is not counted.
func (t *test) busy() time.Duration {
	if len(t.children) == 0 {
		return t.wall - t.waiting
	}
	sum := max(0, t.children[0].begun.Sub(t.begun)-t.waiting)
	for _, c := range t.children {
		sum += c.busy()
	}
	return sum
}

func (t *test) allWaiting() time.Duration {
	sum := t.waiting
	for _, c := range t.children {
		sum += c.allWaiting()
	}
	return sum
}

// slowest is the leaf of a test's subtests that took the longest.
func (t *test) slowest() *test {
	if len(t.children) == 0 {
		return t
	}
	return slices.MaxFunc(t.children, func(a, b *test) int { return cmp.Compare(a.busy(), b.busy()) }).slowest()
}

func (s *suite) spentRows(w *tabwriter.Writer) {
	var list []*spent
	for _, sp := range s.spent {
		list = append(list, sp)
	}
	slices.SortFunc(list, func(a, b *spent) int { return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.what, b.what)) })
	fmt.Fprintf(w, "wall\ttimes\t  what\n")
	for _, sp := range list {
		fmt.Fprintf(w, "%s\t%d\t  %s\n", inSeconds(sp.total), sp.times, sp.what)
	}
}

// short leaves out the path of plinth's module.
func short(name string) string {
	return strings.TrimPrefix(name, "github.com/plinth-io/plinth/")
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }

// compiled is what go test has compiled and linked.
type compiled struct {
	packages, programs     int
	packagesCPU, linkedCPU time.Duration
}

// compiledBy reads the file of go test's flag -debug-actiongraph, which is not documented; nil if it cannot.
func compiledBy(graph []byte) *compiled {
	var actions []struct {
		Mode            string
		CmdUser, CmdSys time.Duration
	}
	if json.Unmarshal(graph, &actions) != nil {
		return nil
	}
	c := new(compiled)
	for _, a := range actions {
		switch cpu := a.CmdUser + a.CmdSys; {
		case cpu == 0: // it was in the cache
		case a.Mode == "build":
			c.packages, c.packagesCPU = c.packages+1, c.packagesCPU+cpu
		case a.Mode == "link":
			c.programs, c.linkedCPU = c.programs+1, c.linkedCPU+cpu
		}
	}
	return c
}

// and returns the sum; nil is nothing.
func (c *compiled) and(other *compiled) *compiled {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	return &compiled{c.packages + other.packages, c.programs + other.programs, c.packagesCPU + other.packagesCPU, c.linkedCPU + other.linkedCPU}
}

func (c *compiled) String() string {
	return fmt.Sprintf("compiled %d packages in %ss of the processors and linked %d programs in %ss", c.packages, inSeconds(c.packagesCPU), c.programs, inSeconds(c.linkedCPU))
}
