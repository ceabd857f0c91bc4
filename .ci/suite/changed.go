package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programBuilt are packages whose tests build cmd/plinth without importing it.
var programBuilt = []string{"bench/torture"}

// readElsewhere are packages that read files which do not stand with them, by a pattern of the files' names. Where
// source is set, they are for the tests of other packages, which therefore are touched too.
var readElsewhere = []struct {
	files  *regexp.Regexp
	dir    string
	source bool
}{
	{regexp.MustCompile(`^[^/]+\.md$|^docs/`), "cmd/plinth", false},
	{regexp.MustCompile(`^server/upstream/testdata/|^dialects/kine/testdata/|^go\.mod$`), "cmd/plinth", false},
	{regexp.MustCompile(`^docs/sql\.md$`), "dialects/logtest", false},
	{regexp.MustCompile(`^docs/sql\.md$`), "server/rest", false},
	{regexp.MustCompile(`^go\.mod$`), "server", false},
	{regexp.MustCompile(`^go\.(mod|sum)$`), "server/servertest", false},
	{regexp.MustCompile(`\.go$`), ".ci/mutants", false}, // the patches apply to them
	{regexp.MustCompile(`\.(go|md)$|\.sql$`), ".ci/additions", false},
	{regexp.MustCompile(`^cmd/plinth/testdata/(etcd|etcd36|kine)/`), "server/etcd/etcdtest", true},
}

// chosen are the packages that a change touches.
type chosen struct {
	base     string
	files    int
	packages []string
	of       int // how many packages there are
}

func (c *chosen) String() string {
	text := fmt.Sprintf("%d files differ from %s; %d of %d packages are tested:", c.files, c.base, len(c.packages), c.of)
	for _, p := range c.packages {
		text += "\n  " + short(p)
	}
	return text
}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	ForTest    string
	Name, Dir  string
	Deps       []string // also indirect ones
	EmbedFiles []string
	Module     *struct {
		Path string
		Main bool
	}
}

// choose compares the work tree in dir, files that git does not know included, with the last commit that it
// has in common with a revision. It chooses among the packages that patterns match.
func choose(dir, since string, patterns ...string) (*chosen, error) {
	base, err := output(dir, "git", "merge-base", "HEAD", since)
	if err != nil {
		return nil, err
	}
	base = strings.TrimSpace(base)
	differ, err := output(dir, "git", "diff", "--name-only", "--no-renames", "-z", base)
	if err != nil {
		return nil, err
	}
	unknown, err := output(dir, "git", "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	files := strings.FieldsFunc(differ+unknown, func(r rune) bool { return r == 0 })
	modules, all, err := modulesChanged(dir, base, files)
	if err != nil {
		return nil, err
	}
	list, err := listPackages(dir, patterns)
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &chosen{base: base[:12], files: len(files)}
	t := touch(list, root, files, modules)
	for _, p := range list {
		if path, is := p.tests(); is {
			if c.of++; all || t.tests[path] || slices.ContainsFunc(p.Deps, func(d string) bool { return t.sources[plain(d)] }) {
				c.packages = append(c.packages, path)
			}
		}
	}
	return c, nil
}

// tests tells whether p is a test binary of this module, and of which package.
func (p *listed) tests() (path string, is bool) {
	path, is = strings.CutSuffix(p.ImportPath, ".test")
	return path, is && p.Name == "main" && p.own()
}

func (p *listed) own() bool { return p.Module != nil && p.Module.Main }

// touched are packages by their import paths.
type touched struct {
	in      map[string]*listed // the packages of this module by their directories, from its root
	tested  map[string]bool    // those that have tests
	sources map[string]bool    // what importers see is changed
	tests   map[string]bool    // only the package's own tests may see the change
}

func touch(list []*listed, root string, files []string, modules map[string]bool) touched {
	t := touched{map[string]*listed{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, p := range list {
		if p.Module != nil && modules[p.Module.Path] {
			t.sources[plain(p.ImportPath)] = true
		}
		if path, is := p.tests(); is {
			t.tested[path] = true
		} else if rel, err := filepath.Rel(root, p.Dir); err == nil && p.ForTest == "" && p.own() {
			t.in[filepath.ToSlash(rel)] = p
		}
	}
	for _, f := range files {
		t.add(f)
	}
	program := t.in["cmd/plinth"]
	for _, dir := range programBuilt {
		if p := t.in[dir]; p != nil && program != nil && slices.ContainsFunc(append(program.Deps, program.ImportPath), func(d string) bool { return t.sources[d] }) {
			t.tests[p.ImportPath] = true
		}
	}
	return t
}

// add marks the packages that a file belongs to and those that read it.
func (t touched) add(file string) {
	for _, r := range readElsewhere {
		if p := t.in[r.dir]; p != nil && r.files.MatchString(file) {
			t.mark(p, r.source)
		}
	}
	dir := filepath.ToSlash(filepath.Dir(file))
	for t.in[dir] == nil && dir != "." {
		dir = filepath.ToSlash(filepath.Dir(dir))
	}
	if p := t.in[dir]; p != nil {
		t.mark(p, isSource(p, strings.TrimPrefix(file, dir+"/")))
	}
}

// mark treats a package without tests as if its source had changed, because it may be for the tests of others.
func (t touched) mark(p *listed, source bool) {
	if source || !t.tested[p.ImportPath] {
		t.sources[p.ImportPath] = true
	} else {
		t.tests[p.ImportPath] = true
	}
}

// isSource tells whether importers see a change of a package's file, or of one below its directory.
func isSource(p *listed, name string) bool {
	if slices.Contains(p.EmbedFiles, name) {
		return true
	}
	if strings.HasPrefix(name, "testdata/") || strings.Contains(name, "/testdata/") || strings.HasSuffix(name, "_test.go") {
		return false
	}
	// Go's, of a package that is gone too, C's, and what can be embedded but is no more, because it was deleted.
	return slices.Contains([]string{".go", ".c", ".h", ".s", ".sql", ".html", ".js", ".css"}, filepath.Ext(name))
}

// plain leaves out what the package was compiled for: "a [b.test]".
func plain(importPath string) string {
	path, _, _ := strings.Cut(importPath, " ")
	return path
}

// listPackages returns the packages that patterns match, those that they and their tests import, and their test binaries.
func listPackages(dir string, patterns []string) (list []*listed, err error) {
	out, err := output(dir, "go", append([]string{"list", "-e", "-deps", "-test", "-json=ImportPath,ForTest,Name,Dir,Deps,EmbedFiles,Module"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(out))
	for {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// moduleLine matches a requirement in go.mod. go.sum has the same modules, and no others that packages come
// from.
var moduleLine = regexp.MustCompile(`^\s*(?:require\s+)?([\w.~/-]+\.[\w.~/-]+)\s+v\S+`)

// modulesChanged returns the modules whose versions differ from those of a commit. all is whether
// another line of go.mod differs, such as the version of Go.
func modulesChanged(dir, base string, files []string) (modules map[string]bool, all bool, err error) {
	modules = map[string]bool{}
	if !slices.Contains(files, "go.mod") {
		return modules, false, nil
	}
	before, err := output(dir, "git", "show", base+":go.mod")
	if err != nil {
		return nil, true, nil // there was none
	}
	after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, false, err
	}
	had, has := linesOfModule(before), linesOfModule(string(after))
	for _, lines := range [][2]map[string]bool{{had, has}, {has, had}} {
		for line := range lines[0] {
			if lines[1][line] {
				continue
			}
			if m := moduleLine.FindStringSubmatch(line); m != nil {
				modules[m[1]] = true
			} else {
				all = true
			}
		}
	}
	return modules, all, nil
}

// linesOfModule leaves out comments and blocks' brackets.
func linesOfModule(text string) map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		if line = strings.TrimSpace(line); line != "" && line != ")" && line != "require (" {
			set[strings.TrimPrefix(line, "require ")] = true
		}
	}
	return set
}

func output(dir, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}
