package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// block is a code block of a document.
type block struct {
	doc      string // from the root of the repository
	line     int    // of its first line, the fence's if it has one
	section  int    // how many headings of the second level are above it
	language string // what the fence says; "indented" without one
	before   string // the last paragraph above it, in one line
	skip     string // why it is not played, as the comment above it says
	lines    []string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.doc, b.line) }

// shell tells whether the block has commands. It is played then, unless a comment says why not.
func (b block) shell() bool {
	return slices.Contains([]string{"console", "sh", "bash", "indented"}, b.language)
}

// command is one command of a block, and what the document shows as its output.
type command struct {
	line  int
	text  string
	shown []string // none: only the exit code is compared
}

// repository is the path from this package to the root.
var repository = filepath.Join("..", "..")

// documents returns the paths of all documents for users and contributors.
func documents(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	must(t, err)
	docs := []string{"README.md", "CONTRIBUTING.md"}
	for _, path := range paths {
		docs = append(docs, "docs/"+filepath.Base(path))
	}
	return docs
}

func readDocument(t *testing.T, doc string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(doc)))
	must(t, err)
	return string(text)
}

var notPlayed = regexp.MustCompile(`^<!-- not played: (.+) -->$`)

// blocksOf returns the blocks of a document, fenced and indented ones.
func blocksOf(doc, text string) []block {
	var (
		blocks    []block
		open      *block // the block that the line is in
		paragraph []string
		reason    string
		sections  int
		blank     = true // the line above is
	)
	begin := func(line int, language string) {
		blocks = append(blocks, block{doc: doc, line: line, section: sections, language: language,
			before: strings.Join(paragraph, " "), skip: reason})
		open, paragraph, reason = &blocks[len(blocks)-1], nil, ""
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		indented := strings.HasPrefix(line, "    ")
		if open != nil && open.language == "indented" && !indented && trimmed != "" {
			open = nil
		}
		switch {
		case open != nil && open.language == "indented":
			open.lines = append(open.lines, strings.TrimPrefix(line, "    "))
		case open != nil && trimmed == "```":
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		case strings.HasPrefix(trimmed, "```"):
			begin(i+1, strings.TrimPrefix(trimmed, "```"))
		case indented && blank:
			begin(i+1, "indented")
			open.lines = append(open.lines, line[4:])
		case notPlayed.MatchString(trimmed):
			reason = notPlayed.FindStringSubmatch(trimmed)[1]
		case trimmed != "":
			if strings.HasPrefix(line, "## ") {
				sections++
			}
			if blank {
				paragraph = nil
			}
			paragraph, reason = append(paragraph, trimmed), ""
		}
		blank = trimmed == ""
	}
	return blocks
}

// commands returns the commands of the block. In a console block a command is a line after a prompt
// ($, or # for root) and the lines that bash needs to complete it, with or without "> " in front.
// Any other shell block is one script.
func (b block) commands() ([]command, error) {
	if b.language != "console" {
		return []command{{line: b.line, text: strings.Join(b.lines, "\n")}}, nil
	}
	var all []command
	for i := 0; i < len(b.lines); i++ {
		line := b.lines[i]
		text, root := strings.CutPrefix(line, "# ")
		if !root {
			var user bool
			if text, user = strings.CutPrefix(line, "$ "); !user {
				if len(all) == 0 {
					return nil, fmt.Errorf("%s: the block does not begin with a prompt", b)
				}
				last := &all[len(all)-1]
				last.shown = append(last.shown, line)
				continue
			}
		}
		c := command{line: b.line + 1 + i, text: text}
		for incomplete(c.text) {
			if i++; i == len(b.lines) {
				return nil, fmt.Errorf("%s:%d: the command does not end: %s", b.doc, c.line, c.text)
			}
			c.text += "\n" + strings.TrimPrefix(b.lines[i], "> ")
		}
		all = append(all, c)
	}
	return all, nil
}

// incomplete tells whether bash would ask for another line: after a backslash, within quotes, and
// in a here-document.
func incomplete(text string) bool {
	if strings.HasSuffix(text, `\`) {
		return true
	}
	cmd := exec.Command("bash", "-n")
	cmd.Stdin = strings.NewReader(text + "\n")
	out, _ := cmd.CombinedOutput()
	return strings.Contains(string(out), "here-document") || strings.Contains(string(out), "unexpected EOF") ||
		strings.Contains(string(out), "unexpected end of file")
}

func TestDocumentBlocks(t *testing.T) {
	t.Parallel()
	text := "One\ntwo:\n\n```console\n$ a \\\n  b\n# cat <<EOF\nx\nEOF\nshown\n\nmore\n$ c \"1\n> 2\"\n```\n\n## Next\n\n" +
		"<!-- not played: why -->\n```sh\nd\n```\nText\n\n    e\n\n    f\nText\n    no block\n"
	blocks := blocksOf("x.md", text)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks: %+v", len(blocks), blocks)
	}
	first, second, third := blocks[0], blocks[1], blocks[2]
	if first.line != 4 || first.before != "One two:" || first.section != 0 || first.skip != "" {
		t.Errorf("first block: %+v", first)
	}
	if second.skip != "why" || second.section != 1 || !second.shell() {
		t.Errorf("second block: %+v", second)
	}
	if third.language != "indented" || strings.Join(third.lines, "|") != "e||f" || third.skip != "" {
		t.Errorf("third block: %+v", third)
	}
	commands, err := first.commands()
	must(t, err)
	want := []command{{5, "a \\\n  b", nil}, {7, "cat <<EOF\nx\nEOF", []string{"shown", "", "more"}}, {13, "c \"1\n2\"", nil}}
	if diff := cmp.Diff(want, commands, cmp.AllowUnexported(command{})); diff != "" {
		t.Error(diff)
	}
}
