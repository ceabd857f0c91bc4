package ui

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// diffRow is a row of a comparison of two texts. The templates diff and diffside show rows below each other and side by
// side.
type diffRow struct {
	What     string // same, change, del, add; or hunk: where the lines below are
	Old, New diffLine
	Path     string // of a hunk: the keys above its first line
	Hidden   int    // of a hunk: how many lines are left out before it, because they are the same
}

// diffLine is a line of one of the texts. Its number is 0 where the text has none.
type diffLine struct {
	Number int
	Parts  []diffPart
}

// diffPart is a piece of a line.
type diffPart struct {
	Class  string // its colour
	Text   string
	Marked bool // it differs from the other text's line
}

// diffRows compares two texts, mostly YAML. There are no rows if they are the same.
func diffRows(old, new []byte) []diffRow {
	d := differ{old: linesOfText(old), new: linesOfText(new), left: mostSteps}
	for _, line := range past.Diff(ended(old), ended(new)) {
		d.add(line)
	}
	d.end()
	return d.rows
}

// ended is a text whose last line is one.
func ended(text []byte) []byte {
	if len(text) == 0 || text[len(text)-1] == '\n' {
		return text
	}
	return append(text[:len(text):len(text)], '\n')
}

func linesOfText(text []byte) []string {
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// differ makes rows of the lines of a unified diff.
type differ struct {
	old, new       []string
	rows           []diffRow
	atOld, atNew   int      // lines that are behind
	removed, added []string // since the last line that is the same
	left           int      // steps that may be spent on words
}

// hunkHead is the head of a hunk: the first line of both texts. Of a text without lines it is 0.
var hunkHead = regexp.MustCompile(`^@@ -([0-9]+)(?:,[0-9]+)? \+([0-9]+)(?:,[0-9]+)? @@`)

func (d *differ) add(line string) {
	if m := hunkHead.FindStringSubmatch(line); m != nil {
		d.flush()
		d.hunk(m[1], m[2])
		return
	}
	if line == "" {
		return
	}
	switch text := line[1:]; line[0] {
	case '-':
		d.removed = append(d.removed, text)
	case '+':
		d.added = append(d.added, text)
	case ' ':
		d.flush()
		d.atOld, d.atNew = d.atOld+1, d.atNew+1
		parts := partsOf(text, nil)
		d.rows = append(d.rows, diffRow{What: "same", Old: diffLine{d.atOld, parts}, New: diffLine{d.atNew, parts}})
	}
}

func (d *differ) hunk(old, new string) {
	a, _ := strconv.Atoi(old)
	b, _ := strconv.Atoi(new)
	a, b = max(a, 1), max(b, 1)
	if hidden := min(a-1-d.atOld, b-1-d.atNew); hidden > 0 {
		d.rows = append(d.rows, diffRow{What: "hunk", Path: pathAt(d.new, b-1), Hidden: hidden})
	}
	d.atOld, d.atNew = a-1, b-1
}

// end counts what is left out after the last difference.
func (d *differ) end() {
	d.flush()
	if hidden := len(d.new) - d.atNew; len(d.rows) > 0 && hidden > 0 && d.atNew > 0 {
		d.rows = append(d.rows, diffRow{What: "hunk", Hidden: hidden})
	}
}

// flush makes rows of lines that have taken the place of others.
func (d *differ) flush() {
	for _, p := range pairsOf(d.removed, d.added, &d.left) {
		row := diffRow{What: "change"}
		var old, new []bool
		if p.old >= 0 && p.new >= 0 {
			if steps := stepsOf(d.removed[p.old], d.added[p.new]); steps <= d.left {
				d.left -= steps
				old, new = marksOf(d.removed[p.old], d.added[p.new])
			}
			if d.removed[p.old] == d.added[p.new] {
				row.What = "same"
			}
		}
		if p.old >= 0 {
			d.atOld++
			row.Old = diffLine{d.atOld, partsOf(d.removed[p.old], old)}
		} else {
			row.What = "add"
		}
		if p.new >= 0 {
			d.atNew++
			row.New = diffLine{d.atNew, partsOf(d.added[p.new], new)}
		} else {
			row.What = "del"
		}
		d.rows = append(d.rows, row)
	}
	d.removed, d.added = nil, nil
}

// inlineRow is a row of a diff that has one text after the other.
type inlineRow struct {
	diffRow
	Parts []diffPart
}

// inlineRows are the rows of a diff with the old lines of a change above its new ones.
func inlineRows(rows []diffRow) (all []inlineRow) {
	var added []inlineRow
	flush := func() { all, added = append(all, added...), nil }
	for _, row := range rows {
		if row.What == "same" || row.What == "hunk" {
			flush()
			all = append(all, inlineRow{row, row.New.Parts})
			continue
		}
		if row.Old.Number > 0 {
			all = append(all, inlineRow{diffRow{What: "del", Old: row.Old}, row.Old.Parts})
		}
		if row.New.Number > 0 {
			added = append(added, inlineRow{diffRow{What: "add", New: row.New}, row.New.Parts})
		}
	}
	flush()
	return all
}

// pathAt names the keys of YAML that a line is below.
func pathAt(lines []string, i int) string {
	if i >= len(lines) {
		return ""
	}
	var keys []string
	below := nesting(lines[i])
	for i--; i >= 0 && below > 0; i-- {
		at := nesting(lines[i])
		if at >= below || strings.TrimSpace(lines[i]) == "" {
			continue
		}
		below = at
		key, _, ok := strings.Cut(strings.TrimLeft(lines[i], " "), ":")
		if ok && !strings.HasPrefix(key, "- ") {
			keys = append([]string{key}, keys...)
		}
	}
	return strings.Join(keys, " › ")
}

// nesting is how deep a line is: an item of a list is below the key of the list, which may be indented as it is.
func nesting(line string) int {
	text := strings.TrimLeft(line, " ")
	depth := 2 * (len(line) - len(text))
	if strings.HasPrefix(text, "- ") {
		depth++
	}
	return depth
}
