package main

import (
	"os"
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
	text := said(t, needs(t, "groff", "groff-base"), "-man", "-Tascii", "-P-c", "-P-b", "-P-u", filepath.Join(dir, "it.1"))
	source, err := os.ReadFile(filepath.Join(dir, "it.1"))
	must(t, err)
	for _, want := range []string{"The pattern *.txt, a_b_c, <name> and [x]:", "$ it  *\n", "it _a_\n", "More.", "all of *these* [IT_ALL]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page is without %q: %s\nmade of %s", want, text, source)
		}
	}
}
