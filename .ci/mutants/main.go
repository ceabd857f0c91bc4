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
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// patience is how long the tests of one fault may take: some faults make them wait for ever.
const patience = 4 * time.Minute

// mutant is a fault.
type mutant struct {
	name, file string
	fault      string
	packages   []string
	run        string   // go test's pattern
	files      []string // that the patch changes
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
	all, err := readAll(filepath.Join(root, ".ci", "mutants"))
	if err != nil {
		return 0, err
	}
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(m mutant) bool { return !slices.Contains(names, m.name) })
	}
	if len(all) == 0 {
		return 0, errors.New("there is no such patch")
	}
	var left []mutant
	for _, m := range all {
		begun := time.Now()
		noticed, out, err := m.plant(root)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.name, err)
		}
		verdict := "caught"
		if !noticed {
			verdict = "SURVIVED"
			left = append(left, m)
		}
		fmt.Printf("%-9s %5.1fs  %s: %s\n", verdict, time.Since(begun).Seconds(), m.name, m.fault)
		if verbose {
			fmt.Println(out)
		}
	}
	fmt.Printf("%d of %d faults were caught\n", len(all)-len(left), len(all))
	for _, m := range left {
		fmt.Printf("not caught: %s: %s\n\tgo test -run '%s' %s\n", m.name, m.fault, m.run, strings.Join(m.packages, " "))
	}
	return len(left), nil
}

// readAll reads the patches of a directory.
func readAll(dir string) (all []mutant, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		m.name, m.file = strings.TrimSuffix(filepath.Base(file), ".patch"), file
		all = append(all, m)
	}
	return all, nil
}

// changes matches the name of a file that a patch changes.
var changes = regexp.MustCompile(`(?m)^--- a/(.+)$`)

// parse reads the lines before the patch itself.
func parse(text string) (m mutant, err error) {
	head, _, _ := strings.Cut(text, "\ndiff --git ")
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "fault":
			m.fault = value
		case "packages":
			m.packages = strings.Fields(value)
		case "run":
			m.run = value
		case "":
		default:
			return m, fmt.Errorf("%q is not known", key)
		}
	}
	for _, f := range changes.FindAllStringSubmatch(text, -1) {
		m.files = append(m.files, f[1])
	}
	if m.fault == "" || len(m.packages) == 0 || m.run == "" || len(m.files) == 0 {
		return m, errors.New("a patch begins with the lines fault, packages and run")
	}
	return m, nil
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
	overlay, err := m.apply(root, dir)
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

// apply puts the changed files into dir, and returns the file that tells go where they are.
func (m *mutant) apply(root, dir string) (overlay string, err error) {
	replace := map[string]string{}
	for _, f := range m.files {
		text, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			return "", err
		}
		copied := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, f)] = copied
	}
	apply := exec.Command("git", "apply", m.file)
	apply.Dir = dir
	// Without this git would look for a repository above dir, and leave out what is not in it.
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := apply.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the patch does not apply: %s", out)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// test runs the tests. Programs that these build have the fault too.
func (m *mutant) test(root, overlay string) (out string, err error) {
	args := []string{"test", "-vet=off", "-ldflags=-s -w", "-timeout", patience.String(), "-run", m.run}
	cmd := exec.Command("go", append(args, m.packages...)...)
	cmd.Dir = root
	if overlay != "" {
		cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	b, err := cmd.CombinedOutput()
	if err == nil && strings.Contains(string(b), "[no tests to run]") {
		err = errors.New("no test matches the pattern")
	}
	return string(b), err
}
