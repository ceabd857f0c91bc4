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
	"fmt"
	"strings"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// Options say what a run measures.
type Options struct {
	measure.ComparisonOptions
	Objects int               // in a list; 0: 10,000
	Nodes   []int             // numbers of nodes that are simulated; none: 100 and 1,000
	Disks   map[string]string // directories of databases, by the name of the server
}

// scale is how much work a run is.
type scale struct {
	rounds      int
	round       time.Duration
	starts      int
	settle      time.Duration // before memory is looked at
	objects     int           // in a list
	page        int
	pods        int // in a list
	watchRounds int
	watch       time.Duration
	churn       measure.ChurnSize // whose resources are parts of the objects; its watches are also those of watch
	nodes       []int
	heartbeats  time.Duration
	workers     int // nodes that run pods
	replicas    int // of a Deployment on them
}

var (
	full = scale{rounds: 9, round: 500 * time.Millisecond, starts: 5, settle: 5 * time.Second, objects: 10_000, page: 500, pods: 1000,
		watchRounds: 3, watch: 4 * time.Second, churn: measure.ChurnSize{Writers: 200, Keys: 1000, Resources: 10, Watches: 100}, nodes: []int{100, 1000}, heartbeats: 20 * time.Second, workers: 100, replicas: 3000}
	quick = scale{rounds: 2, round: 20 * time.Millisecond, starts: 1, settle: 10 * time.Millisecond, objects: 200, page: 50, pods: 200,
		watchRounds: 1, watch: 200 * time.Millisecond, churn: measure.ChurnSize{Writers: 20, Keys: 100, Resources: 2, Watches: 10}, nodes: []int{5, 10}, heartbeats: 300 * time.Millisecond, workers: 5, replicas: 20}
)

// run is one Run.
type run struct {
	*measure.Comparison[*server]
	scale scale
	name  string            // of the namespace, and of what is in none
	disks map[string]string // as in Options
}

// Run measures everything and writes the report. If it fails half-way or ctx ends, what was measured
// until then is written, and the report comes with the error.
func Run(ctx context.Context, o Options) (*figures.Comparison, error) {
	r := &run{Comparison: measure.NewComparison[*server](o.ComparisonOptions), scale: full, disks: o.Disks}
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
	r.Dial, r.Start = r.dial, r.startOwn
	return r.Run(ctx, "against", func(ctx context.Context) error {
		for _, s := range r.Endpoints {
			if err := s.prepare(ctx, r.name); err != nil {
				return fmt.Errorf("%s: make a namespace: %w", s.Name, err)
			}
		}
		return steps.Measure(ctx, r, r.Only, r.Line.Say)
	})
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
	{Name: stepDeployments, What: "deployments", Do: (*run).measureDeployments, Named: true},
	{Name: "end", What: "memory after the load", Do: (*run).measureEnd},
}

// Steps are the names of the measurements. All that read need fill.
func Steps() []string { return steps.Names() }

// rates compares operations a second, and the servers' CPU time for each.
func (r *run) rates(ctx context.Context, what string, workers int, prepare func(*server) apiload.Operation) error {
	return r.loads(ctx, &figures.Row{What: what, Unit: "/s"}, workers, measure.RateOf, prepare)
}

// times compares how long operations take, one at a time, and the servers' CPU time for each.
func (r *run) times(ctx context.Context, what string, prepare func(*server) apiload.Operation) error {
	return r.loads(ctx, &figures.Row{What: what, Unit: "ms", Less: true}, 1, measure.MeanOf, prepare)
}

func (r *run) loads(ctx context.Context, row *figures.Row, workers int, count func(measure.Load) figures.Sample, prepare func(*server) apiload.Operation) error {
	ops := map[*server]apiload.Operation{}
	for _, s := range r.Endpoints {
		ops[s] = prepare(s)
	}
	return r.Compare(ctx, r.scale.rounds, true, func(ctx context.Context, s *server) ([]figures.Sample, error) {
		l, cpu, err := s.loaded(func() (measure.Load, error) { return measure.ClosedLoop(ctx, workers, r.scale.round, ops[s]) })
		return []figures.Sample{count(l), cpu}, err
	}, row, cpuOf(row.What))
}

func cpuOf(what string) *figures.Row {
	return &figures.Row{What: what + ": CPU of the server", Unit: "ms/req", Less: true}
}

// loaded returns a load, and the sample of the server's CPU time for each operation.
func (s *server) loaded(load func() (measure.Load, error)) (l measure.Load, cpu figures.Sample, err error) {
	before, known := measure.Spend(s.PIDs)
	if l, err = load(); err != nil {
		return l, cpu, err
	}
	after, still := measure.Spend(s.PIDs)
	spent := after.Since(before)
	return l, figures.Sample{Value: figures.Millis(spent.CPU) / float64(max(l.Ops, 1)), None: !known || !still}, nil
}
