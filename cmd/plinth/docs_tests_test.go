package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// aTest matches a test in a code span, and a directory that a sentence names after tests.
var (
	aTest  = regexp.MustCompile(`^(Test|Benchmark)[A-Z]\w*$`)
	inSpan = regexp.MustCompile("(\\bin )?`([^`\n]+)`")
)

// TestDocumentedTests looks up the tests that documents name. "`TestA` and `TestB` in `sqlstore`" are in
// that package; a test without a package is in any.
func TestDocumentedTests(t *testing.T) {
	t.Parallel()
	in := testsOf(t)
	for _, doc := range documents(t) {
		for _, text := range paragraphs(withoutBlocks(readDocument(t, doc))) {
			var named []string
			for _, m := range inSpan.FindAllStringSubmatch(text, -1) {
				switch word := m[2]; {
				case aTest.MatchString(word):
					named = append(named, word)
					if len(in[word]) == 0 {
						t.Errorf("%s names %s, which is no test", doc, word)
					}
				case m[1] != "" && len(named) > 0:
					for _, name := range named {
						if len(in[name]) > 0 && !in[name][word] {
							t.Errorf("%s says that %s is in %s; it is in %v", doc, name, word, in[name])
						}
					}
					named = nil
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

// paragraphs are those of a document; a row of a table is one, too.
func paragraphs(text string) []string {
	return regexp.MustCompile(`\n\s*\n|\n\|`).Split(text, -1)
}

// testsOf returns the directories of the packages that have a test, by its name.
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
