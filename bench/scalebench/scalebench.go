// Package scalebench measures what plinth costs by how many objects there are. It starts a plinth on each
// database, fills it step by step, and measures the same at each number: start, memory, requests, lists
// and watches.
//
// The package knows of plinth what any client knows. No other package but cmd/plinth may import it.
package scalebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
)

// Options say what a run measures.
type Options struct {
	measure.Options
	// Counts are the numbers of objects, each more than the one before, and multiples of 100.
	Counts []int
	Memory string    // bound of plinth's memory, as serve's flag has it; empty: none is given
	Log    io.Writer // gets a line for each number of objects
}

// patience is how long everything may take that is measured at one number of objects, beside filling.
const patience = 30 * time.Minute

// fillPatience is how long each object may take that is written.
const fillPatience = 50 * time.Millisecond

// scale is how much work a run is.
type scale struct {
	round   time.Duration // of each request
	settle  time.Duration // before memory is looked at: plinth gives back what it does not use within 30 s
	watches int
	writes  int // that they see
	page    int // objects of a page
}

var (
	full  = scale{round: time.Second, settle: 30 * time.Second, watches: 20, writes: 150, page: 500}
	quick = scale{round: 30 * time.Millisecond, settle: 10 * time.Millisecond, watches: 5, writes: 10, page: 50}
)

// run is one Run.
type run struct {
	Options
	scale    scale
	dir      string // of temporary files, removed at the end
	progress measure.Progress
	report   *Report
}

// Run measures everything and writes the report. If it fails half-way, what was measured until then is
// written, and the report comes with the error.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	r := &run{Options: o, scale: full, progress: measure.Progress{W: o.Progress, Begun: time.Now()}}
	if o.Quick {
		r.scale = quick
	}
	r.report = &Report{Run: figures.NewRun(o.Version, r.progress.Begun, o.Quick), Memory: o.Memory}
	if r.dir, err = measure.MakeDirs(o.Dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	defer r.progress.Clear()
	for _, dsn := range o.DSNs {
		if e := r.measureDatabase(ctx, dsn); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", dialects.Scheme(dsn), e))
		}
		if ctx.Err() != nil {
			break
		}
	}
	r.report.Seconds = time.Since(r.report.Begun).Seconds()
	if len(r.report.Databases) == 0 {
		return nil, err
	}
	return r.report, errors.Join(err, r.report.write(o.Dir))
}

func (r *run) measureDatabase(ctx context.Context, dsn string) (err error) {
	r.progress.Say("%s: start", dialects.Scheme(dsn))
	command := r.Command
	if r.Memory != "" {
		command = append(slices.Clone(command), "--memory="+r.Memory)
	}
	own, err := apiload.StartOwn(ctx, command, r.dir, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop(ctx)) }()
	d := &Database{Name: own.Name}
	m := &measurement{run: r, d: d, own: own}
	for _, count := range r.Counts {
		if err := m.at(ctx, count); err != nil {
			return fmt.Errorf("with %s objects: %w", figures.Number(float64(count)), err)
		}
		if d.Counts == nil { // the first
			r.report.Databases = append(r.report.Databases, d)
		}
		d.Counts = append(d.Counts, count)
		r.progress.Clear()
		fmt.Fprintf(r.Log, "%s: %s objects are measured, after %s\n", d.Name, figures.Number(float64(count)), time.Since(r.progress.Begun).Round(time.Second))
	}
	return nil
}
