package scalebench

import (
	"io"

	"github.com/plinth-io/plinth/bench/figures"
)

// Report is the result of one run.
type Report struct {
	figures.Run
	Memory    string      `json:"memory,omitempty"` // bound of plinth's memory; empty: none was given
	Databases []*Database `json:"databases"`
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
	notes := []string{"ConfigMaps of 1 KiB; one request at a time where nothing else is said, medians"}
	if r.Memory != "" {
		notes = append(notes, "with --memory "+r.Memory)
	}
	if err := r.WriteHead(w, "server", notes...); err != nil {
		return err
	}
	for _, d := range r.Databases {
		head := []string{d.Name}
		for _, count := range d.Counts {
			head = append(head, figures.Number(float64(count)))
		}
		t := figures.Table{{}, head}
		for _, known := range rows {
			row := d.row(known.What)
			if row == nil {
				continue
			}
			cells := []string{"  " + row.What}
			for _, v := range row.Values[:min(len(row.Values), len(d.Counts))] {
				cells = append(cells, figures.Number(v)+" "+row.Unit)
			}
			t.Add(cells...)
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// write puts the report and its charts into dir.
func (r *Report) write(dir string) error {
	var drawings []figures.Drawing
	for _, d := range r.Databases {
		about := []string{"on " + d.Name}
		if r.Memory != "" {
			about = append(about, "--memory "+r.Memory)
		}
		for _, chart := range charts {
			drawing := d.chart(r.Subtitle(about...), chart.title, chart.up, chart.rows)
			drawings = append(drawings, figures.Drawing{File: "scale-" + d.Name + "-" + chart.name + ".svg", SVG: drawing})
		}
	}
	return r.Save(dir, "scale.json", r, drawings...)
}

func (d *Database) chart(subtitle, title, up string, names []string) string {
	var places []string
	for _, count := range d.Counts {
		places = append(places, figures.Count(count))
	}
	var lines []figures.Line
	for _, name := range names {
		if row := d.row(name); row != nil {
			lines = append(lines, figures.Line{Name: name, Values: row.Values[:min(len(row.Values), len(places))]})
		}
	}
	return figures.LineChart(title, subtitle, "ConfigMaps of 1 KiB", up, places, lines)
}
