// Suite runs tests and says where their time goes.
//
//	go run ./.ci/suite [-o FILE] [-packages PATTERNS [-changed [-since REVISION]] [-race | -quick]] -- COMMAND
//	go run ./.ci/suite [-q] FILE
//
// COMMAND runs go test, also through another program, such as env A=B go test -vet=off. To it suite adds the
// packages that -packages matches; with -changed, only those that a change touches and those that import them. The
// ones that take long come first. With -race, the race detector watches what plan.go does not leave out; beside it
// the rest is tested without. With -quick, what plan.go names as slow is left out.
//
// While the tests run, suite prints what go test would print without -json. At the end come tables of the time
// by package, by the slowest tests, and by what tests build and start (see dialects/logtest/spent), and
// then what failed, within 100 lines. The exit code is COMMAND's. FILE is what -o or go test -json has written; - is
// standard input; then the exit code is 1 if a test failed.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// options are the flags.
type options struct {
	output   string
	quiet    bool
	packages string
	changed  bool
	since    string
	race     bool
	quick    bool
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == asTimed {
		os.Exit(timed(os.Args[2:]))
	}
	var o options
	flag.StringVar(&o.output, "o", "", "the `file` that keeps what go test -json says")
	flag.BoolVar(&o.quiet, "q", false, "only the tables and what failed")
	flag.StringVar(&o.packages, "packages", "", "test the packages that these `patterns` match, separated by spaces")
	flag.BoolVar(&o.changed, "changed", false, "test only those of -packages that a change touches, and those that import them")
	flag.StringVar(&o.since, "since", "main", "the `revision` that a change began at, for -changed")
	flag.BoolVar(&o.race, "race", false, "watch what -packages matches with the race detector, except what is left out (plan.go)")
	flag.BoolVar(&o.quick, "quick", false, "leave out what takes long (plan.go), unless the command names tests")
	flag.Parse()
	if flag.NArg() == 0 || (o.race || o.changed || o.quick) && o.packages == "" || o.race && o.quick {
		fmt.Fprintln(os.Stderr, "usage: suite [-o FILE] [-packages PATTERNS [-changed [-since REVISION]] [-race | -quick]] -- COMMAND [ARGUMENT]...\n       suite [-q] FILE")
		os.Exit(2)
	}
	code, err := run(flag.Args(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string, o options) (code int, err error) {
	s := newSuite(os.Stdout)
	s.quiet = o.quiet
	if len(args) == 1 {
		if err := readFile(s, args[0]); err != nil {
			return 1, err
		}
		s.conclude(nil)
		return s.code(), nil
	}
	lanes := [][][]string{{args}}
	if o.packages != "" {
		packages, err := o.choose()
		if err != nil {
			return 1, err
		}
		if len(packages) == 0 {
			return 0, nil
		}
		chosen := slices.Contains(args, "-run")
		if o.quick && !chosen {
			lanes = quick(args, packages, !o.changed && slices.Contains(strings.Fields(o.packages), "./..."))
		} else {
			lanes = plan(args, packages, o.race, chosen)
		}
	}
	if o.output != "" {
		f, err := os.Create(o.output)
		if err != nil {
			return 1, err
		}
		defer f.Close()
		s.keep = bufio.NewWriterSize(f, 1<<20) // so that writing does not hold up the tests
	}
	total, code, err := runLanes(s, lanes)
	if err = errors.Join(err, s.keep.Flush()); err != nil {
		return code, err
	}
	s.conclude(total)
	return code, nil
}

// runLanes runs lanes side by side, and the commands of a lane one after the other. All together test two packages more
// at once than there are processors, because many tests wait: with one more, a quarter of the processors' time is idle.
func runLanes(s *suite, lanes [][][]string) (total *compiled, code int, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, commands := range lanes {
		all.Go(func() {
			for j, command := range commands {
				atOnce := 1 // another lane begins with tests of processes, which use processors themselves, or waits for most of its time
				if i == 0 || j > 0 {
					atOnce = max(1, runtime.GOMAXPROCS(0)+3-len(lanes))
				}
				c, hasFailed, failed := runTests(s, 1+i+j*len(lanes), atOnce, command)
				mu.Lock()
				code, total, err = max(code, hasFailed), total.and(c), errors.Join(err, failed)
				mu.Unlock()
				if failed != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return total, code, err
}

// choose returns the import paths of the packages to test.
func (o options) choose() ([]string, error) {
	patterns := strings.Fields(o.packages)
	if !o.changed {
		return importPaths(patterns)
	}
	c, err := choose(".", o.since, patterns...)
	if err != nil {
		return nil, err
	}
	fmt.Println(c)
	return c.packages, nil
}

// runTests runs one go test, which has the number run.
func runTests(s *suite, run, atOnce int, args []string) (c *compiled, code int, err error) {
	dir, err := os.MkdirTemp("", "plinth-suite-")
	if err != nil {
		return nil, 1, err
	}
	defer os.RemoveAll(dir)
	graph := filepath.Join(dir, "actions.json")
	if args, err = instrument(args, atOnce, graph); err != nil {
		return nil, 1, err
	}
	if code, err = runCommand(s, run, args); err != nil {
		return nil, code, err
	}
	b, _ := os.ReadFile(graph) // go writes none if it refuses its arguments
	return compiledBy(b), code, nil
}

func readFile(s *suite, name string) error {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return err
		}
		defer f.Close()
	}
	return s.read(0, f)
}

// instrument has go test say what suite reads, and test so many packages at once.
func instrument(args []string, atOnce int, graph string) ([]string, error) {
	for i := range len(args) - 1 {
		if args[i] == "go" && args[i+1] == "test" {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			return slices.Insert(slices.Clone(args), i+2, "-p", strconv.Itoa(atOnce), "-json", "-exec", "'"+self+"' "+asTimed, "-debug-actiongraph", graph), nil
		}
	}
	return nil, errors.New("the command has no go test")
}

// runCommand runs go test and reads its output. An interrupt from the terminal reaches the command too; other
// signals are passed on.
func runCommand(s *suite, run int, args []string) (code int, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	go passOn(signals, cmd.Process)
	readErr := s.read(run, stdout)
	err = cmd.Wait()
	signal.Stop(signals)
	close(signals)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code, err = max(exit.ExitCode(), 1), nil
	}
	return code, errors.Join(err, readErr)
}

// passOn ends when signals is closed.
func passOn(signals <-chan os.Signal, to *os.Process) {
	for s := range signals {
		if s != syscall.SIGINT {
			_ = to.Signal(s)
		}
	}
}
