package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra/doc"
)

// TestPage makes a page of a help text whose characters mean something in Markdown.
func TestPage(t *testing.T) {
	c := command{Use: "it", Short: "Do it", Long: "The pattern *.txt, a_b_c, <name> and [x]:\n  $ it  *\n  it _a_\nMore."}
	c.Flags = append(c.Flags, struct{ Name, Shorthand, Usage, Default, Type, NoValue string }{Name: "all", Usage: "all of *these* [IT_ALL]", Type: "bool", Default: "false"})
	dir := t.TempDir()
	must(t, doc.GenManTree(c.tree(), &doc.GenManHeader{Section: "1"}, dir))
	text := readPage(t, filepath.Join(dir, "it.1"))
	source, err := os.ReadFile(filepath.Join(dir, "it.1"))
	must(t, err)
	for _, want := range []string{"The pattern *.txt, a_b_c, <name> and [x]:", "$ it  *\n", "it _a_\n", "More.", "all of *these* [IT_ALL]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page is without %q: %s\nmade of %s", want, text, source)
		}
	}
}

// readPage is what man shows of a page, as text. It fails the test if groff warns.
func readPage(t *testing.T, page string) string {
	t.Helper()
	cmd := exec.Command(needs(t, "groff", "groff-base"), "-Kutf8", "-man", "-Tutf8", "-P-c", "-P-b", "-P-u", page)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Errorf("%s: %v: %s", filepath.Base(page), err, &stderr)
	}
	return string(out)
}

// TestManuals reads all pages of the release.
func TestManuals(t *testing.T) {
	r := made(t)
	p, err := here()
	must(t, err)
	dir := t.TempDir()
	said(t, "tar", "-xzf", filepath.Join(r.dist, r.archiveName(p)+".tar.gz"), "-C", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "*/man/man1/*.1"))
	must(t, err)
	if len(pages) < 20 {
		t.Fatalf("there are %d man pages", len(pages))
	}
	for _, page := range pages {
		text := readPage(t, page)
		if filepath.Base(page) != "plinth-serve.1" {
			continue
		}
		for _, want := range []string{"PLINTH_DSN", "--data-dir", "SEE ALSO", "sqlite://plinth.db                   a file, for one process at a time\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("the page of plinth serve is without %s", want)
			}
		}
	}
}
