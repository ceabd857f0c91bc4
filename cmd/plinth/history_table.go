package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// cell is a text in a table and its colour.
type cell struct{ color, text string }

// table writes rows with columns of one width, as kubectl does, but in blocks: rows are shown before all
// are known, and columns only become wider.
type table struct {
	screen *screen
	widths []int
	rows   [][]cell
}

// blockOfTable is how many rows decide the width of columns before they are written.
const blockOfTable = 100

func newTable(s *screen, titles ...string) *table {
	t := &table{screen: s}
	var row []cell
	for _, title := range titles {
		row = append(row, cell{faint, title})
	}
	t.rows = append(t.rows, row)
	return t
}

// add adds a row and writes the block if it is full.
func (t *table) add(row ...cell) error {
	for i := range row {
		row[i].text = printable(row[i].text)
	}
	if t.rows = append(t.rows, row); len(t.rows) < blockOfTable {
		return nil
	}
	return t.flush()
}

// flush writes what has been added. Titles without any row are not written.
func (t *table) flush() error {
	if t.widths == nil && len(t.rows) < 2 {
		return nil
	}
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		for i, c := range row {
			b.WriteString(t.screen.paint(c.color, c.text))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(c.text)+3))
			}
		}
		b.WriteByte('\n')
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.screen, b.String())
	return err
}
