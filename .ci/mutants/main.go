// Mutants plants faults, one at a time, and says which of them the tests do not notice.
//
//	go run ./.ci/mutants [-v] [NAME...]
//
// Each file *.patch beside this one is a fault. Its first lines say what it is and which tests must fail because of it:
//
//	fault: the floor is moved beyond what was swept
//	packages: ./dialects/logtest
//	run: ^TestCompactIsBounded$/^sqlite$
//
// The files that a patch names are copied, it is applied to the copies, and go test compiles these in place of the files
// (go help build, -overlay), so that the work tree stays as it is, and so do packages that are compiled already. Before
// that, the tests must pass without a fault. The exit code is 1 if a fault was not noticed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/plinth-io/plinth/.ci/patched"
)

// patience is how long the tests of one fault may take: some faults make them wait for ever.
const patience = 4 * time.Minute

// mutant is a fault.
type mutant struct {
	patched.Patch
	fault    string
	packages []string
	run      string // go test's pattern
}

func main() {
	verbose := flag.Bool("v", false, "show the output of all tests")
	flag.Parse()
	survived, err := plantAll(flag.Args(), *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survived > 0 {
		os.Exit(1)
	}
}

func plantAll(names []string, verbose bool) (survived int, err error) {
	root, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	all, err := readAll(filepath.Join(root, ".ci", "mutants"), names)
	if err != nil {
		return 0, err
	}
	var left []mutant
	for _, m := range all {
		begun := time.Now()
		noticed, out, err := m.plant(root)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.Name, err)
		}
		verdict := "caught"
		if !noticed {
			verdict = "SURVIVED"
			left = append(left, m)
		}
		fmt.Printf("%-9s %5.1fs  %s: %s\n", verdict, time.Since(begun).Seconds(), m.Name, m.fault)
		if verbose {
			fmt.Println(out)
		}
	}
	fmt.Printf("%d of %d faults were caught\n", len(all)-len(left), len(all))
	for _, m := range left {
		fmt.Printf("not caught: %s: %s\n\tgo test -run '%s' %s\n", m.Name, m.fault, m.run, strings.Join(m.packages, " "))
	}
	return len(left), nil
}

// readAll reads the faults of a directory that have one of names; without names, all.
func readAll(dir string, names []string) (all []mutant, err error) {
	patches, err := patched.ReadAll(dir, keys, nil)
	if err != nil {
		return nil, err
	}
	if patches, err = patched.Choose(patches, names); err != nil {
		return nil, err
	}
	for _, p := range patches {
		all = append(all, newMutant(p))
	}
	return all, nil
}

// keys are the lines before a patch.
var keys = []string{"fault", "packages", "run"}

func newMutant(p patched.Patch) mutant {
	return mutant{Patch: p, fault: p.Says["fault"], packages: strings.Fields(p.Says["packages"]), run: p.Says["run"]}
}

// plant tests the fault. It is an error if the tests fail without the fault, or if it cannot be compiled.
func (m *mutant) plant(root string) (noticed bool, out string, err error) {
	if out, err := m.test(root, ""); err != nil {
		return false, "", fmt.Errorf("the tests fail without the fault: %w\n%s", err, out)
	}
	dir, err := os.MkdirTemp("", "plinth-mutant-")
	if err != nil {
		return false, "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.Apply(root, dir)
	if err != nil {
		return false, "", err
	}
	out, err = m.test(root, overlay)
	if strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") {
		return false, "", fmt.Errorf("it cannot be compiled: %s", out)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return false, "", err
	}
	return err != nil, out, nil
}

// test runs the tests. Programs that these build have the fault too.
func (m *mutant) test(root, overlay string) (out string, err error) {
	args := []string{"test", "-vet=off", "-ldflags=-s -w", "-timeout", patience.String(), "-run", m.run}
	out, err = patched.Go(root, overlay, append(args, m.packages...)...)
	if err == nil && strings.Contains(out, "[no tests to run]") {
		err = errors.New("no test matches the pattern")
	}
	return out, err
}
