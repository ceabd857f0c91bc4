package figures

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table is rows of cells, for people. Rows need not have all cells.
type Table [][]string

// Add adds a row.
func (t *Table) Add(cells ...string) { *t = append(*t, cells) }

// Write aligns the cells.
func (t Table) Write(w io.Writer) error {
	width := 0
	for _, row := range t {
		width = max(width, len(row))
	}
	var b bytes.Buffer
	tabs := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(tabs, strings.Join(row, "\t")+strings.Repeat("\t", width-len(row)+1))
	}
	if err := tabs.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
