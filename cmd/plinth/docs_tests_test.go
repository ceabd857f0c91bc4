package main

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// aTest matches a test. testsIn matches what says where tests are: "`TestA` and `TestB` in `sqlstore`".
var (
	aTest   = regexp.MustCompile("`((?:Test|Benchmark)[A-Z]\\w*)`")
	testsIn = regexp.MustCompile("((?:`(?:Test|Benchmark)[A-Z]\\w*`(?:,|\\s|and)*)+)\\s+in\\s+`([^`\n]+)`")
)

// TestDocumentedTests looks up the tests that documents name, in the packages that they name.
func TestDocumentedTests(t *testing.T) {
	t.Parallel()
	in := testsOf(t)
	for _, doc := range documents(t) {
		text := withoutBlocks(readDocument(t, doc))
		for _, m := range aTest.FindAllStringSubmatch(text, -1) {
			if len(in[m[1]]) == 0 {
				t.Errorf("%s names %s, which is no test", doc, m[1])
			}
		}
		for _, list := range testsIn.FindAllStringSubmatch(text, -1) {
			for _, m := range aTest.FindAllStringSubmatch(list[1], -1) {
				if len(in[m[1]]) > 0 && !in[m[1]][list[2]] {
					t.Errorf("%s says that %s is in %s; it is in %v", doc, m[1], list[2], slices.Collect(maps.Keys(in[m[1]])))
				}
			}
		}
	}
}

// TestPromisesAreTested wants a test, or the command that tries to break plinth, in the last column of each
// table of promises.
func TestPromisesAreTested(t *testing.T) {
	t.Parallel()
	rows := 0
	for _, doc := range []string{"docs/guarantees.md", "docs/replicas.md"} {
		promises := false
		for line := range strings.Lines(readDocument(t, doc)) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			switch last := strings.TrimSpace(cells[len(cells)-1]); {
			case len(cells) < 2:
				promises = false
			case last == "held by" || last == "tested by":
				promises = true
			case promises && !strings.HasPrefix(last, "---"):
				if rows++; !strings.Contains(last, "`Test") && !strings.Contains(last, "`plinth bench torture`") {
					t.Errorf("%s: no test holds %s", doc, strings.TrimSpace(cells[0]))
				}
			}
		}
	}
	if rows < 25 {
		t.Errorf("only %d promises were found", rows)
	}
}

// testsOf returns the directories of the packages that declare a name in their tests.
func testsOf(t *testing.T) map[string]map[string]bool {
	t.Helper()
	in := map[string]map[string]bool{}
	must(t, filepath.WalkDir(repository, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(repository, filepath.Dir(path))
		for _, d := range parsed.Decls {
			for _, name := range namesIn(d) {
				if in[name] == nil {
					in[name] = map[string]bool{}
				}
				in[name][filepath.ToSlash(dir)] = true
			}
		}
		return err
	}))
	return in
}
