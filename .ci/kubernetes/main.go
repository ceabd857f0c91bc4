// Kubernetes moves plinth to another release of Kubernetes, as far as a program can, and says what is left to do.
//
//	go run ./.ci/kubernetes [-record=false] RELEASE
//
// RELEASE is a version of k8s.io/kubernetes, such as v1.38.0. In this order it
//   - has kube-apiserver of that release answer whatever tests compare with (make record), and says which
//     recordings are others now, which resources plinth does not serve yet, and which it may drop;
//   - moves every go.mod of the tree that has the release of plinth's own, and tidies them;
//   - writes the new release wherever the old one stands with its patch version;
//   - compiles everything, and shows what does not compile.
//
// Nothing is committed: git diff shows what was done, and git checkout takes it back.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const discovery = "server/testdata/discovery/everything.txt"

func main() {
	record := flag.Bool("record", true, "record anew what kube-apiserver answers, which takes ten minutes")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./.ci/kubernetes [-record=false] RELEASE, such as v1.38.0")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := move(flag.Arg(0), *record); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

func move(name string, record bool) error {
	to, err := parseRelease(name)
	if err != nil {
		return err
	}
	from, err := releaseIn("go.mod")
	if err != nil {
		return fmt.Errorf("not at the root of plinth's checkout: %w", err)
	}
	if _, err := download(to); err != nil {
		return fmt.Errorf("%s %s cannot be had: %w", kubernetes, to.version(), err)
	}
	fmt.Printf("from %s to %s\n", from.version(), to.version())
	if record {
		if err := recordAnew(to); err != nil {
			return err
		}
	}
	if err := moveModules(from, to); err != nil {
		return err
	}
	if err := rename(from, to); err != nil {
		return err
	}
	return compile()
}

func releaseIn(file string) (release, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return release{}, err
	}
	return releaseOf(string(text))
}

// recordAnew has the kube-apiserver of a release answer the recordings. It is built from a module of its own, because
// plinth and its other modules do not compile with that release yet.
func recordAnew(to release) error {
	before, err := os.ReadFile(discovery)
	if err != nil {
		return err
	}
	module, err := os.MkdirTemp("", "apiserver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(module)
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte(apiserverModule(to)), 0o644); err != nil {
		return err
	}
	if err := moveModule(module, to, to, nil); err != nil {
		return err
	}
	fmt.Println("\nrecording what kube-apiserver answers")
	if err := run(".", "make", "record", "MODULE="+module); err != nil {
		return err
	}
	changed, err := output(".", "git", "diff", "--stat", "--", "server/**/testdata/**/*.txt", "server/testdata/**/*.txt")
	if err != nil {
		return err
	}
	fmt.Printf("\nrecordings that are others now (git diff shows the answers):\n%s", or(changed, " none\n"))
	after, err := os.ReadFile(discovery)
	if err != nil {
		return err
	}
	was, is := served(string(before)), served(string(after))
	fmt.Printf("\nresources that plinth does not serve: %s\n", or(strings.Join(missing(was, is), " "), "none"))
	fmt.Printf("resources that kube-apiserver has no more: %s\n", or(strings.Join(missing(is, was), " "), "none"))
	return nil
}

// moveModules moves the modules that have plinth's release, plinth's own first: others have the versions of its go.mod.
func moveModules(from, to release) error {
	list, err := output(".", "git", "ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return err
	}
	fmt.Println("\nmodules:")
	var own []string
	files := strings.Fields(list)
	slices.SortFunc(files, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !from.isIn(string(text)) {
			continue
		}
		dir := filepath.Dir(file)
		if err := moveModule(dir, from, to, own); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if dir == "." {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			own = required(string(text))
		}
		fmt.Printf("  %s\n", file)
	}
	return nil
}

// moveModule changes a go.mod and tidies it. own is what plinth's own go.mod requires, in lines of a path and a version, which
// replace lines follow.
func moveModule(dir string, from, to release, own []string) error {
	file := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	moved := from.replaced(string(text), to)
	if strings.Contains(moved, "\t"+kubernetes+" ") {
		staged, err := stagedModules(to)
		if err != nil {
			return err
		}
		moved = withRequires(moved, staged, to)
	}
	if err := os.WriteFile(file, []byte(followed(moved, own)), 0o644); err != nil {
		return err
	}
	// -e: a package that the release has no more is something that does not compile, and no reason to stop here.
	if err := run(dir, "go", "mod", "tidy", "-e"); err != nil {
		return fmt.Errorf("go mod tidy: %w", err)
	}
	return nil
}

// stagedModules are the modules that k8s.io/kubernetes keeps in its own tree, and therefore requires at v0.0.0.
func stagedModules(to release) ([]string, error) {
	file, err := download(to)
	if err != nil {
		return nil, err
	}
	var module struct{ GoMod string }
	if err := json.Unmarshal([]byte(file), &module); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(module.GoMod)
	if err != nil {
		return nil, err
	}
	return staged(string(text)), nil
}

// download has the module of a release, and returns what go mod download -json says of it.
func download(r release) (string, error) {
	return output(".", "go", "mod", "download", "-json", kubernetes+"@"+r.version())
}

// rename writes the new release where the old one stands with its patch version, and names the lines that
// have its minor version alone: whether they are about the release that is served, a reader has to say.
func rename(from, to release) error {
	list, _ := output(".", append([]string{"git", "grep", "-lF", from.patch(), "--"}, texts...)...) // 1: there are none
	for _, file := range strings.Fields(list) {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(from.renamed(string(text), to)), 0o644); err != nil {
			return err
		}
	}
	lines, _ := output(".", append([]string{"git", "grep", "-nE", from.minorPattern(), "--"}, texts...)...)
	fmt.Printf("\nlines to read, which name %s:\n%s", from.minorName(), or(lines, " none\n"))
	return nil
}

// texts are the files that may name the release that plinth serves, for git.
var texts = []string{":!CHANGELOG.md", ":!*go.mod", ":!*go.sum", ":!*testdata/*", ":!docs/bench/*", ":!*.svg", ":!.ci/kubernetes/*"}

func compile() error {
	fmt.Println("\ncompiling everything")
	cmd := exec.Command("go", "vet", "./...", "./.ci/suite", "./.ci/patched", "./.ci/mutants", "./.ci/additions", "./.ci/kubernetes")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	errs := typeErrors(string(out))
	fmt.Printf("%s\n%d errors in %d packages\n", out, len(errs.lines), len(errs.packages))
	if err != nil {
		return errors.New("mend what does not compile; then make test says what else differs")
	}
	return nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// output runs a command in dir and returns what it prints.
func output(dir string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s%s", strings.Join(command, " "), err, out, exit.Stderr)
	}
	return string(out), err
}

// run runs a command in dir and shows what it prints.
func run(dir string, command ...string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
