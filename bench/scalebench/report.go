package scalebench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
)

// Report is the result of one run.
type Report struct {
	Plinth    string      `json:"plinth"` // version
	Go        string      `json:"go"`
	Platform  string      `json:"platform"` // such as linux/amd64
	CPUs      int         `json:"cpus"`
	Begun     time.Time   `json:"begun"`
	Seconds   float64     `json:"seconds"`
	Quick     bool        `json:"quick"`            // short rounds: a smoke test
	Memory    string      `json:"memory,omitempty"` // bound of plinth's memory; empty: none was given
	Databases []*Database `json:"databases"`

	// Files are the paths of what was written, the report itself among them.
	Files []string `json:"files"`
}

// Database is the result on one database.
type Database struct {
	Name   string `json:"name"` // sqlite, postgres or mysql
	Counts []int  `json:"counts"`
	Rows   []*Row `json:"rows"`
}

// Row is one thing that was measured at all numbers of objects.
type Row struct {
	What   string    `json:"what"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
}

// Names of rows, in the order of the table.
const (
	rowStart       = "start to ready"
	rowMemory      = "memory after the start"
	rowMemoryAfter = "memory after the load"
	rowDisk        = "database"
	rowFill        = "create, 64 at a time"
	rowCreate      = "create"
	rowUpdate      = "update"
	rowGet         = "get"
	rowWatch       = "delay of watches"
	rowPage        = "page of a list"
	rowFirstLabel  = "first list by label" // has the index built
	rowLabel       = "list of 1% by label"
	rowField       = "list of one by field"
	rowWhole       = "whole list"
)

var rows = []Row{
	{What: rowStart, Unit: "ms"}, {What: rowMemory, Unit: "MiB"}, {What: rowMemoryAfter, Unit: "MiB"}, {What: rowDisk, Unit: "MiB"},
	{What: rowFill, Unit: "/s"}, {What: rowCreate, Unit: "ms"}, {What: rowUpdate, Unit: "ms"}, {What: rowGet, Unit: "ms"},
	{What: rowWatch, Unit: "ms"}, {What: rowPage, Unit: "ms"},
	{What: rowFirstLabel, Unit: "ms"}, {What: rowLabel, Unit: "ms"}, {What: rowField, Unit: "ms"}, {What: rowWhole, Unit: "ms"},
}

// charts are files, and the rows that each draws.
var charts = []struct {
	name, title, up string
	rows            []string
}{
	{"requests", "Requests and watches by number of objects", "milliseconds, median", []string{rowGet, rowCreate, rowUpdate, rowWatch}},
	{"lists", "Lists and start by number of objects", "milliseconds, median", []string{rowPage, rowLabel, rowField, rowWhole, rowStart}},
	{"memory", "Memory and disk by number of objects", "MiB", []string{rowMemory, rowMemoryAfter, rowDisk}},
}

func newReport(o *Options, begun time.Time) *Report {
	return &Report{
		Plinth: o.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		Begun: begun, Quick: o.Quick, Memory: o.Memory,
	}
}

// add adds a value to a row, which it makes if there is none.
func (d *Database) add(what string, value float64) {
	row := d.row(what)
	if row == nil {
		for _, known := range rows {
			if known.What == what {
				row = &known
			}
		}
		d.Rows = append(d.Rows, row)
	}
	row.Values = append(row.Values, value)
}

func (d *Database) row(what string) *Row {
	for _, row := range d.Rows {
		if row.What == what {
			return row
		}
	}
	return nil
}

// WriteTable prints the report for people: a block for each database, a column for each number.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "plinth %s, %s, %s, %d CPUs, shared by load and server\n", r.Plinth, r.Go, r.Platform, r.CPUs)
	fmt.Fprintln(w, "ConfigMaps of 1 KiB; one request at a time where nothing else is said, medians")
	if r.Memory != "" {
		fmt.Fprintln(w, "with --memory", r.Memory)
	}
	if r.Quick {
		fmt.Fprintln(w, "quick run: short rounds, to see that everything works; its figures say little")
	}
	for _, d := range r.Databases {
		fmt.Fprintln(w)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		cells := []string{d.Name}
		for _, count := range d.Counts {
			cells = append(cells, measure.Number(float64(count)))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
		for _, known := range rows {
			row := d.row(known.What)
			if row == nil {
				continue
			}
			cells := []string{"  " + row.What}
			for _, v := range row.Values[:min(len(row.Values), len(d.Counts))] {
				cells = append(cells, measure.Number(v)+" "+row.Unit)
			}
			fmt.Fprintln(t, strings.Join(cells, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// write puts the report and its charts into dir.
func (r *Report) write(dir string) error {
	for _, d := range r.Databases {
		for _, chart := range charts {
			path := filepath.Join(dir, "scale-"+d.Name+"-"+chart.name+".svg")
			drawing := d.chart(r.subtitle(d.Name), chart.title, chart.up, chart.rows)
			if err := os.WriteFile(path, []byte(drawing), 0o644); err != nil {
				return fmt.Errorf("write chart: %w", err)
			}
			r.Files = append(r.Files, path)
		}
	}
	path := filepath.Join(dir, "scale.json")
	r.Files = append(r.Files, path)
	return measure.WriteJSON(path, r)
}

func (r *Report) subtitle(database string) string {
	s := fmt.Sprintf("plinth %s on %s, %s, %s, %d CPUs, %s", r.Plinth, database, r.Go, r.Platform, r.CPUs, r.Begun.UTC().Format("2006-01-02"))
	if r.Memory != "" {
		s += ", --memory " + r.Memory
	}
	if r.Quick {
		s += ", quick run: not to be judged by"
	}
	return s
}

func (d *Database) chart(subtitle, title, up string, names []string) string {
	var places []string
	for _, count := range d.Counts {
		places = append(places, measure.Count(count))
	}
	var lines []measure.Line
	for _, name := range names {
		if row := d.row(name); row != nil {
			lines = append(lines, measure.Line{Name: name, Values: row.Values[:min(len(row.Values), len(places))]})
		}
	}
	return measure.LineChart(title, subtitle, "ConfigMaps of 1 KiB", up, places, lines)
}
