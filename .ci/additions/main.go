// Additions plays the table "Where things go" of CONTRIBUTING.md: for each row it adds such a thing to the tree, in the
// places that the row names, and sees whether that compiles.
//
//	go run ./.ci/additions [NAME...]
//
// Each file *.patch beside this one adds the thing of one row. Its first lines say which row, and which packages to compile with
// their tests. If tests hold the addition to its places, the patch names them, too:
//
//	row: subcommand
//	packages: ./cmd/plinth
//	run: ^TestNewMetric$
//
// The work tree stays as it is (package patched). The exit code is 1 if an addition does not compile, or a test fails.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plinth-io/plinth/.ci/patched"
)

var keys, optional = []string{"row", "packages"}, []string{"run"}

func main() {
	flag.Parse()
	failed, err := addAll(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "additions:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

func addAll(names []string) (failed int, err error) {
	root, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	all, err := patched.ReadAll(filepath.Join(root, ".ci", "additions"), keys, optional)
	if err != nil {
		return 0, err
	}
	if all, err = patched.Choose(all, names); err != nil {
		return 0, err
	}
	for _, p := range all {
		begun, verdict := time.Now(), "ok"
		out, err := add(root, &p)
		if err != nil {
			verdict, failed = "FAILED", failed+1
		}
		fmt.Printf("%-6s %5.1fs  %s: %s\n", verdict, time.Since(begun).Seconds(), p.Name, p.Says["row"])
		if err != nil {
			fmt.Printf("%v\n%s", err, out)
		}
	}
	return failed, nil
}

// add compiles the packages of a patch, with their tests if the patch adds no package, and runs the tests that it names.
func add(root string, p *patched.Patch) (out string, err error) {
	dir, err := os.MkdirTemp("", "plinth-addition-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := p.Apply(root, dir)
	if err != nil {
		return "", err
	}
	packages := strings.Fields(p.Says["packages"])
	// go vet, which compiles tests, too, enters the directories of packages, and that of a new one is in the overlay alone.
	compile := "vet"
	if slices.ContainsFunc(p.Added, func(file string) bool { return isNew(root, filepath.Dir(file)) }) {
		compile = "build"
	}
	if out, err := goCommand(root, overlay, append([]string{compile}, packages...)); err != nil || p.Says["run"] == "" {
		return out, err
	}
	return goCommand(root, overlay, append([]string{"test", "-vet=off", "-run", p.Says["run"]}, packages...))
}

func isNew(root, dir string) bool {
	_, err := os.Stat(filepath.Join(root, dir))
	return err != nil
}

func goCommand(root, overlay string, args []string) (out string, err error) {
	if out, err = patched.Go(root, overlay, args...); err != nil {
		err = fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return out, err
}
