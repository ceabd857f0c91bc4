package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
)

// scale is how much work a run is.
type scale struct {
	rounds  int
	round   time.Duration // of one half of a pair
	starts  int
	idle    time.Duration // until memory is looked at
	objects int           // in a list
	roles   int           // and as many bindings
	// idleWatches is how many watches are open while nothing happens.
	idleWatches int
	// burstWatches and burstChanges are of the burst after which memory is looked at, and
	// afterBurst is how long after it.
	burstWatches, burstChanges int
	afterBurst                 time.Duration
	watchers                   int
	watch                      time.Duration
	// fanWatches is how many watches see each change while the CPU time for events is compared.
	fanWatches, fanRounds int
	fanFor                time.Duration
	definitions           int // of custom resources
	// customObjects is how many custom resources are in a list.
	customObjects int
	nodes         int           // simulated
	heartbeats    time.Duration // how long nodes send nothing but heartbeats
	pods          int           // that are created and deleted
}

// Many short rounds are better than few long ones: other programs disturb a machine in bursts of
// seconds, and the median of the ratios needs neighbouring rounds that are alike.
var (
	full  = scale{rounds: 15, round: 500 * time.Millisecond, starts: 5, idle: 3 * time.Second, objects: 10_000, roles: 2000, idleWatches: 1000, burstWatches: 2000, burstChanges: 500, afterBurst: 30 * time.Second, watchers: 100, watch: 10 * time.Second, fanWatches: 1000, fanRounds: 5, fanFor: 3 * time.Second, definitions: 500, customObjects: 2000, nodes: 100, heartbeats: 15 * time.Second, pods: 1000}
	quick = scale{rounds: 1, round: 20 * time.Millisecond, starts: 1, idle: 100 * time.Millisecond, objects: 500, roles: 20, idleWatches: 100, burstWatches: 100, burstChanges: 20, afterBurst: 100 * time.Millisecond, watchers: 20, watch: 500 * time.Millisecond, fanWatches: 20, fanRounds: 1, fanFor: 200 * time.Millisecond, definitions: 5, customObjects: 100, nodes: 10, heartbeats: 500 * time.Millisecond, pods: 50}
)

// run is one Run.
type run struct {
	measure.Options
	scale    scale
	dir      string // of temporary files, removed at the end
	progress measure.Progress
}

// Run measures everything on every database and writes the report. It needs a quiet
// machine and, without Quick, about five minutes for each. If a database fails half-way the
// others are measured all the same, and the report with what there is comes with the error. The
// command in the options is that of a process that calls Child; it is started for plinth and for
// the handlers that plinth is compared with.
func Run(ctx context.Context, o measure.Options) (_ *Report, err error) {
	r := &run{Options: o, scale: full, progress: measure.Progress{W: o.Progress, Begun: time.Now()}}
	if o.Quick {
		r.scale = quick
	}
	if r.dir, err = measure.MakeDirs(r.Dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	defer r.progress.Clear()
	report, err := r.measure(ctx)
	if !report.any() {
		return nil, err
	}
	return report, errors.Join(err, report.write(o.Dir))
}

func (r *run) measure(ctx context.Context) (_ *Report, err error) {
	report := &Report{Run: figures.NewRun(r.Version, r.progress.Begun, r.Quick)}
	for _, dsn := range r.DSNs {
		if ctx.Err() != nil {
			break
		}
		d := &Database{Name: dialects.Scheme(dsn), unjudged: r.Quick}
		report.Databases = append(report.Databases, d)
		if e := r.measureDatabase(ctx, d, dsn); e != nil {
			err = errors.Join(err, fmt.Errorf("measure %s: %w", d.Name, e))
		}
	}
	report.Seconds = time.Since(report.Begun).Seconds()
	return report, err
}

// any tells whether anything was measured.
func (r *Report) any() bool {
	return slices.ContainsFunc(r.Databases, func(d *Database) bool { return len(d.Figures) > 0 })
}

func (r *run) measureDatabase(ctx context.Context, d *Database, dsn string) error {
	for _, m := range []struct {
		what string
		do   func(context.Context, *Database, string) error
	}{
		{"store", r.measureStorage}, {"server", r.measureServer}, {"rights", r.measureRights}, {"custom resources", r.measureCustom}, {"nodes", r.measureNodes},
	} {
		if err := m.do(ctx, d, dsn); err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
	}
	return nil
}
