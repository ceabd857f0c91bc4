package etcdbench

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// Options say what a run measures.
type Options struct {
	measure.ComparisonOptions
	// Servers are kube-apiservers that run on endpoints, with their kubeconfigs. One is plinth's unless its
	// name begins with etcd or kine. So do the names of other endpoints if the targets for these are to be judged.
	Servers []measure.Other
	Keys    int // that there are while memory is measured; 0: 100,000
}

// scale is how much work a run is.
type scale struct {
	rounds        int
	round         time.Duration
	starts        int
	settle, idle  time.Duration // before memory is looked at, and while nothing happens
	objects, keys int           // in a list, and in all
	page          int64
	objectRounds  int
	watchRounds   int
	watch         time.Duration
	churn         measure.ChurnSize // whose watches are also those of watch
	compactions   int               // while there is churn
}

var (
	full = scale{rounds: 9, round: 500 * time.Millisecond, starts: 5, settle: 40 * time.Second, idle: 10 * time.Second, objects: 10_000, keys: 100_000, page: 500, objectRounds: 5,
		watchRounds: 3, watch: 4 * time.Second, churn: measure.ChurnSize{Writers: 200, Keys: 1000, Resources: 10, Watches: 100}, compactions: 10}
	quick = scale{rounds: 2, round: 20 * time.Millisecond, starts: 1, settle: 100 * time.Millisecond, idle: 100 * time.Millisecond, objects: 300, keys: 1000, page: 50, objectRounds: 2,
		watchRounds: 1, watch: 200 * time.Millisecond, churn: measure.ChurnSize{Writers: 20, Keys: 100, Resources: 2, Watches: 10}, compactions: 3}
)

var (
	createTargets = []figures.Target{{Own: "sqlite", To: "etcd", Bound: figures.AtLeast(1.5)}, {Own: "postgres mysql", To: "kine", Bound: figures.AtLeast(5)}}
	pageTargets   = []figures.Target{{To: "etcd", Bound: figures.AtMost(1)}, {To: "kine", Bound: figures.AtMost(0.1)}}
	delayTargets  = []figures.Target{{To: "etcd", Bound: figures.AtMost(1)}}
	objectTargets = []figures.Target{{Own: "sqlite", To: "etcd", Bound: figures.AtLeast(1)}, {Own: "postgres", To: "kine", Bound: figures.AtLeast(3)}}
	memoryTargets = []figures.Target{{To: "etcd", Bound: figures.AtMost(0.5)}}
)

// run is one Run.
type run struct {
	*measure.Comparison[*endpoint]
	scale  scale
	prefix string // of all keys
}

// Run measures everything and writes the report. If it fails half-way or ctx ends, what was
// measured until then is written, and the report comes with the error.
func Run(ctx context.Context, o Options) (*figures.Comparison, error) {
	r := &run{Comparison: measure.NewComparison[*endpoint](o.ComparisonOptions), scale: full}
	if o.Quick {
		r.scale = quick
	}
	if o.Keys > 0 {
		r.scale.keys = max(o.Keys, r.scale.objects)
	}
	r.prefix = "/registry/plinth-bench-" + strings.ToLower(rand.Text()[:8]) + "/"
	r.Dial, r.Start, r.Plain = r.dial, r.startOwn, plain
	for _, other := range o.Servers {
		e, err := dialServer(ctx, other)
		if err != nil {
			return nil, err
		}
		r.Apart = append(r.Apart, e)
	}
	return r.Run(ctx, "etcd", func(ctx context.Context) error { return steps.Measure(ctx, r, r.Only, r.Line.Say) })
}

// steps are in the order in which they are made. Memory comes first after the keys are there,
// before anything else was asked.
var steps = measure.Steps[*run]{
	{Name: "start", What: "start and idle CPU", Do: (*run).measureStart},
	{Name: "fill", What: "writing keys", Do: (*run).fill, For: []string{"memory", "read"}},
	{Name: "memory", What: "memory", Do: (*run).measureMemory},
	{Name: "read", What: "reads", Do: (*run).measureReads},
	{Name: "write", What: "writes", Do: (*run).measureWrites},
	{Name: "watch", What: "watches", Do: (*run).measureWatch},
	{Name: "churn", What: "churn", Do: (*run).measureChurn},
	{Name: "objects", What: "kube-apiservers", Do: (*run).measureObjects},
}

// Steps are the names of the measurements. Memory and reads need fill.
func Steps() []string { return steps.Names() }
