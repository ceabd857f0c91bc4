package ui

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// TestDiffRows: lines that are a change of each other stand in one row, with the words that differ marked.
func TestDiffRows(t *testing.T) {
	old := "a: 1\nb: 2\nspec:\n  containers:\n  - image: web:1\n    name: web\n    x1: 1\n    x2: 1\n    x3: 1\n    x4: 1\n    args: old\nlast: 1\n"
	new := "a: 1\nb: 2\nspec:\n  containers:\n  - image: web:2\n    name: web\n    x1: 1\n    x2: 1\n    x3: 1\n    x4: 1\n    command: quite another thing\nlast: 1\n"
	rows := diffRows([]byte(old), []byte(new))
	var got []string
	for _, r := range rows {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d %d %s|%s", r.What, r.Old.Number, r.New.Number, shown(r.Old.Parts), shown(r.New.Parts))))
	}
	for _, want := range []string{"change 5 5   - image: web:[1]|  - image: web:[2]", "del 11 0     args: old|", "add 0 11 |    command: quite another thing"} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("there is no row %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
	if len(diffRows([]byte(old), []byte(old))) != 0 {
		t.Error("the same text has rows")
	}
}

func shown(parts []diffPart) string {
	var b strings.Builder
	for _, p := range parts {
		if p.Marked {
			b.WriteString("[" + p.Text + "]")
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// TestDiffRowsHunks: what is left out is counted, and the keys above are named.
func TestDiffRowsHunks(t *testing.T) {
	var b strings.Builder
	b.WriteString("spec:\n  template:\n    list:\n")
	for i := range 40 {
		fmt.Fprintf(&b, "    - k%d: v\n", i)
	}
	old := b.String()
	rows := diffRows([]byte(old), []byte(strings.Replace(old, "k20: v", "k20: w", 1)))
	first, last := rows[0], rows[len(rows)-1]
	if first.What != "hunk" || first.Hidden != 20 || first.Path != "spec › template › list" {
		t.Errorf("the first row is %+v", first)
	}
	if last.What != "hunk" || last.Hidden != 16 {
		t.Errorf("the last row is %+v", last)
	}
}

// TestDiffRowsModel: the rows of any two texts have all lines that are shown, with their numbers and their whole text.
func TestDiffRowsModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() []byte {
		var lines []string
		for range r.IntN(30) {
			lines = append(lines, strings.Repeat("  ", r.IntN(3))+[]string{"a: 1", "b: two words", "- c: <script>", "", "é: ü", "d"}[r.IntN(6)])
		}
		return []byte(strings.Join(lines, "\n"))
	}
	for range 2000 {
		old, new := text(), text()
		a, b := linesOfText(old), linesOfText(new)
		same, changed := 0, 0
		for _, row := range diffRows(old, new) {
			if n := row.Old.Number; n > 0 && diffText(row.Old.Parts) != a[n-1] {
				t.Fatalf("line %d is %q, not %q, of\n%s\n\n%s", n, diffText(row.Old.Parts), a[n-1], old, new)
			}
			if n := row.New.Number; n > 0 && diffText(row.New.Parts) != b[n-1] {
				t.Fatalf("line %d is %q, not %q, of\n%s\n\n%s", n, diffText(row.New.Parts), b[n-1], old, new)
			}
			switch row.What {
			case "same":
				same++
			case "hunk":
				same += row.Hidden
			default:
				changed++
				if diffText(row.Old.Parts) == diffText(row.New.Parts) && row.Old.Number > 0 && row.New.Number > 0 {
					t.Fatalf("a row says that %q has become itself", diffText(row.Old.Parts))
				}
			}
		}
		if changed > 0 && len(old) > 0 && len(new) > 0 && same > min(len(a), len(b)) {
			t.Fatalf("%d lines are the same of\n%s\n\n%s", same, old, new)
		}
	}
}

func diffText(parts []diffPart) (text string) {
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// TestDiffRowsLarge: two large texts without anything in common have all rows, and so have two of one long line.
func TestDiffRowsLarge(t *testing.T) {
	var a, b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&a, "k%d: %d\n", i, i)
		fmt.Fprintf(&b, "m%d: %d\n", i, i)
	}
	if rows := diffRows([]byte(a.String()), []byte(b.String())); len(rows) < 20000 {
		t.Errorf("%d rows", len(rows))
	}
	if rows := diffRows([]byte(strings.Repeat("x ", 1<<19)), []byte(strings.Repeat("y ", 1<<19))); len(rows) != 2 {
		t.Errorf("%d rows of one line", len(rows))
	}
}

// TestDiffRowsHostile: texts of many lines that have much in common cost no more than the bound.
func TestDiffRowsHostile(t *testing.T) {
	t.Parallel()
	text := func(word string) []byte {
		var b strings.Builder
		for block := range 60 {
			for range 50 {
				b.WriteString("k: " + strings.Repeat(word+",", 200) + "\n")
			}
			fmt.Fprintf(&b, "same: %d\n", block)
		}
		return []byte(b.String())
	}
	d := differ{old: linesOfText(text("a")), new: linesOfText(text("b")), left: mostSteps}
	for _, line := range past.Diff(text("a"), text("b")) {
		d.add(line)
	}
	d.end()
	if d.left < 0 || len(d.rows) < 60*50 {
		t.Errorf("%d rows, %d steps left", len(d.rows), d.left)
	}
}
