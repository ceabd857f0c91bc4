package ui

import (
	"html/template"
	"regexp"
	"strings"
)

// textLine is a line of YAML as the page shows it.
type textLine struct {
	Number int
	Depth  int // of its indentation, for folding
	Opens  bool
	HTML   template.HTML
}

// linesOf marks up YAML that past.YAML has written, which is regular: block style, a key or an item on each line.
func linesOf(text []byte) []textLine {
	var lines []textLine
	block := -1 // depth of the key whose text goes over several lines
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		depth := len(line) - len(strings.TrimLeft(line, " "))
		l := textLine{Number: i + 1, Depth: depth}
		switch {
		case block >= 0 && (depth > block || strings.TrimSpace(line) == ""):
			if strings.TrimSpace(line) == "" {
				l.Depth = block + 1
			}
			l.HTML = span("t-s", line)
		default:
			block = -1
			l.HTML = markUp(line)
			if blockText.MatchString(line) {
				block = depth
			}
		}
		lines = append(lines, l)
	}
	for i := range lines[:max(0, len(lines)-1)] {
		next := lines[i+1]
		lines[i].Opens = next.Depth > lines[i].Depth || opensList(string(lines[i].HTML), next, lines[i].Depth)
	}
	return lines
}

// blockText is a line whose value is the text of the lines below it.
var blockText = regexp.MustCompile(`(: |- )[|>][-+0-9]*$`)

// opensList tells whether a line has a list below it, which YAML may indent as the line itself.
func opensList(line string, next textLine, depth int) bool {
	return next.Depth == depth && strings.HasSuffix(line, `<span class="t-p">:</span>`) && strings.HasPrefix(strings.TrimLeft(string(next.HTML), " "), `<span class="t-p">- </span>`)
}

// keyed is a line with a key: its indentation, dashes, key, and what follows.
var keyed = regexp.MustCompile(`^( *)((?:- )*)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#][^:]*?(?::[^ ][^:]*?)*):( .*)?$`)

// markUp colours a line.
func markUp(line string) template.HTML {
	if m := keyed.FindStringSubmatch(line); m != nil {
		return template.HTML(m[1]) + dashes(m[2]) + span("t-k", m[3]) + span("t-p", ":") + value(m[4])
	}
	rest := strings.TrimLeft(line, " ")
	indent := template.HTML(line[:len(line)-len(rest)])
	marks := ""
	for strings.HasPrefix(rest, "- ") || rest == "-" {
		n := min(2, len(rest))
		marks, rest = marks+rest[:n], rest[n:]
	}
	return indent + dashes(marks) + value(rest)
}

func dashes(text string) template.HTML {
	out := template.HTML("")
	for ; text != ""; text = text[min(2, len(text)):] {
		out += span("t-p", text[:min(2, len(text))])
	}
	return out
}

var (
	number  = regexp.MustCompile(`^-?[0-9][0-9.eE+_-]*$`)
	literal = regexp.MustCompile(`^(true|false|null|~|\{\}|\[\])$`)
)

// value colours what stands behind a key or a dash.
func value(text string) template.HTML {
	bare := strings.TrimSpace(text)
	if bare == "" {
		return template.HTML(template.HTMLEscapeString(text))
	}
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	return template.HTML(lead) + span(valueClass(bare), text[len(lead):])
}

func span(class, text string) template.HTML {
	return template.HTML(`<span class="` + class + `">` + template.HTMLEscapeString(text) + `</span>`)
}
