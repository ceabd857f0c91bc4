// Package apibench measures plinth beside other servers of the Kubernetes API, such as kube-apiserver on
// etcd or kine. It starts a plinth for each database, connects to the servers named beside it, and sends
// all of them the same, in short rounds and in turn.
//
// Everything is in a namespace of the run, or has its name, and is deleted at the end.
//
// The package knows of plinth what any client knows, and its flags. No other package but cmd/plinth may
// import it.
package apibench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
)

// Options say what a run measures.
type Options struct {
	DSNs   []string // databases to measure plinth on; none: only others are
	Others []Other  // servers beside plinth, which run already
	TLS    TLS      // for those that are named by URL
	Dir    string   // gets the results, and holds SQLite's files meanwhile
	Churn  time.Duration
	// ChurnRate is how many writes a second the churn makes at most; 0: as many as it can.
	ChurnRate int
	Objects   int      // in a list; 0: 10,000
	Nodes     []int    // numbers of nodes that are simulated; none: 100 and 1,000
	Only      []string // measurements to make, by the names in Steps; none: all
	// PIDs are the processes of servers, by name; plinth's own are known. The first is the server itself,
	// whose memory is measured. CPU time and writes to disks are those of all.
	PIDs     map[string][]int
	Disks    map[string]string // directories of databases, by the name of the server
	Quick    bool              // short rounds and few objects, to see that everything works
	Command  []string          // of plinth serve
	Version  string            // plinth's own, for the report
	Progress io.Writer         // a terminal that shows what is being done; nil: nothing
}

// Other is a server that runs already.
type Other struct {
	Name string
	At   string // URL or file of a kubeconfig
}

// TLS are files as kubectl has flags for.
type TLS struct{ Cert, Key, CA string }

// scale is how much work a run is.
type scale struct {
	rounds      int
	round       time.Duration
	starts      int
	settle      time.Duration // before memory is looked at
	objects     int           // in a list
	page        int
	pods        int // in a list
	watches     int
	watchRounds int
	watch       time.Duration
	writers     int // of the churn
	churned     int // objects
	resources   int // parts that churned objects belong to; each watch is of one
	nodes       []int
	heartbeats  time.Duration
}

var (
	full = scale{rounds: 9, round: 500 * time.Millisecond, starts: 5, settle: 5 * time.Second, objects: 10_000, page: 500, pods: 1000,
		watches: 100, watchRounds: 3, watch: 4 * time.Second, writers: 200, churned: 1000, resources: 10, nodes: []int{100, 1000}, heartbeats: 20 * time.Second}
	quick = scale{rounds: 2, round: 50 * time.Millisecond, starts: 1, settle: 10 * time.Millisecond, objects: 200, page: 50, pods: 200,
		watches: 10, watchRounds: 1, watch: 200 * time.Millisecond, writers: 20, churned: 100, resources: 2, nodes: []int{5, 10}, heartbeats: 300 * time.Millisecond}
)

// run is one Run.
type run struct {
	Options
	scale    scale
	dir      string // of temporary files, removed at the end
	name     string // of the namespace, and of what is in none
	progress measure.Progress
	report   *figures.Comparison
	servers  []*server
}

// Run measures everything and writes the report. If it fails half-way or ctx ends, what was measured
// until then is written, and the report comes with the error.
func Run(ctx context.Context, o Options) (_ *figures.Comparison, err error) {
	r := newRun(o)
	if r.dir, err = measure.MakeDirs(o.Dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	defer r.progress.Clear()
	err = r.measure(ctx)
	var measured []figures.Endpoint
	for _, s := range r.servers {
		measured = append(measured, s.Endpoint)
	}
	r.report.Finish(measured)
	if ctx.Err() != nil {
		r.report.Interrupted = true
		err = measure.ErrInterrupted
	}
	if len(r.report.Rows) == 0 {
		return nil, err
	}
	return r.report, errors.Join(err, r.report.Write(o.Dir, "against"))
}

func newRun(o Options) *run {
	r := &run{Options: o, scale: full, progress: measure.Progress{W: o.Progress, Begun: time.Now()}}
	if o.Quick {
		r.scale = quick
	}
	if o.Objects > 0 {
		r.scale.objects = o.Objects
	}
	if len(o.Nodes) > 0 {
		r.scale.nodes = o.Nodes
	}
	r.name = "plinth-bench-" + strings.ToLower(rand.Text()[:8])
	r.report = &figures.Comparison{Run: figures.NewRun(o.Version, r.progress.Begun, o.Quick)}
	return r
}

// steps are the measurements, in the order in which they are made: memory comes before and after the
// objects are there.
var steps = measure.Steps[*run]{
	{Name: "start", What: "start", Do: (*run).measureStart},
	{Name: "fill", What: "creating objects", Do: (*run).measureFill, For: []string{"get", "list", "write"}},
	{Name: "get", What: "gets", Do: (*run).measureGets},
	{Name: "list", What: "lists", Do: (*run).measureLists},
	{Name: "write", What: "writes", Do: (*run).measureWrites},
	{Name: "watch", What: "watches", Do: (*run).measureWatch},
	{Name: "churn", What: "churn", Do: (*run).measureChurn},
	{Name: "nodes", What: "nodes", Do: (*run).measureNodes},
	{Name: "end", What: "memory after the load", Do: (*run).measureEnd},
}

// Steps are the names of the measurements. All that read need fill.
func Steps() []string { return steps.Names() }

func (r *run) measure(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.disconnect(ctx)) }()
	if err := r.connect(ctx); err != nil {
		return err
	}
	return steps.Measure(ctx, r, r.Only, r.progress.Say)
}

// connect starts plinth on each database and connects to all servers. Others come first, so that a
// wrong address is told at once.
func (r *run) connect(ctx context.Context) error {
	var others []*server
	for _, other := range r.Others {
		r.progress.Say("%s: connect", other.Name)
		s, err := r.dial(ctx, other)
		if err != nil {
			return fmt.Errorf("%s: %w", other.Name, err)
		}
		others = append(others, s)
	}
	for _, dsn := range r.DSNs {
		r.progress.Say("%s: start", dialects.Scheme(dsn))
		s, err := r.startOwn(ctx, dsn)
		if err != nil {
			return fmt.Errorf("%s: %w", dialects.Scheme(dsn), err)
		}
		r.servers = append(r.servers, s)
	}
	r.servers = append(r.servers, others...)
	for _, s := range r.servers {
		if err := s.prepare(ctx, r.name); err != nil {
			return fmt.Errorf("%s: make a namespace: %w", s.Name, err)
		}
	}
	return nil
}

// disconnect deletes what the run has made on servers that are not plinth's own, and ends plinth.
func (r *run) disconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	var errs []error
	for _, s := range r.servers {
		if s.own != nil {
			errs = append(errs, s.own.Stop(ctx))
			continue
		}
		r.progress.Say("%s: delete what was written", s.Name)
		if err := s.clean(ctx, r.name); err != nil {
			errs = append(errs, fmt.Errorf("%s: delete what was written: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}
