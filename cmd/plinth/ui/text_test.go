package ui

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

var aTag = regexp.MustCompile(`<[^>]*>`)

// TestLinesOf: marking up a text changes nothing of what it says, and HTML in it stays text.
func TestLinesOf(t *testing.T) {
	t.Parallel()
	text, err := past.YAML(map[string]any{
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"a.example.com/b": "1", "": "x", "# no comment": "y: z", `q"uote`: "it's"}},
		"list":     []any{map[string]any{"name": "a", "args": []any{"-x", "- y", "", "true", "1e3"}}, []any{1, 2.5, nil, true}, map[string]any{}, []any{}},
		"block":    "first\n\n  second <script>\nthird: 3\n", "folded": strings.Repeat("word ", 60), "html": `</td><script>alert("1")</script>&amp;`, "tab": "a\tb",
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := linesOf(text)
	var all []string
	for i, l := range lines {
		if l.Number != i+1 {
			t.Errorf("line %d has the number %d", i+1, l.Number)
		}
		for _, tag := range aTag.FindAllString(string(l.HTML), -1) {
			if tag != "</span>" && !regexp.MustCompile(`^<span class="t-[a-z]">$`).MatchString(tag) {
				t.Errorf("line %d has the tag %s", i+1, tag)
			}
		}
		all = append(all, html.UnescapeString(aTag.ReplaceAllString(string(l.HTML), "")))
	}
	if got := strings.Join(all, "\n") + "\n"; got != string(text) {
		t.Errorf("the text became\n%s\nof\n%s", got, text)
	}
}

// TestFolding: a line opens what is below it, also a list that YAML does not indent.
func TestFolding(t *testing.T) {
	t.Parallel()
	lines := linesOf([]byte("a:\n  b: 1\nlist:\n- x\n- y: 1\n  z: 2\nlast: |\n  text\n"))
	for i, want := range []bool{true, false, true, false, true, false, true, false} {
		if lines[i].Opens != want {
			t.Errorf("line %d opens: %v", i+1, lines[i].Opens)
		}
	}
}
