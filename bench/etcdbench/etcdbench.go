package etcdbench

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
	// DSNs are the databases on which plinth is measured; None: only others are.
	DSNs []string
	// Others are the endpoints beside plinth.
	Others []Other
	// Servers are kube-apiservers that run on endpoints: URL is a kubeconfig. One is plinth's unless its
	// name begins with etcd or kine.
	Servers []Other
	// TLS has the files for the endpoints beside plinth.
	TLS TLS
	// Dir gets etcd.json and the charts. It also holds the SQLite files while they are measured, so
	// it decides which disk that is.
	Dir string
	// Churn is how long many writers and watchers work; 0: 10 s.
	Churn time.Duration
	// ChurnRate is how many writes a second they make at most; 0: as many as they can.
	ChurnRate int
	// Keys are how many there are while memory is measured; 0: 100,000.
	Keys int
	// Only are the measurements to make, by the names in Steps; None: all.
	Only []string
	// PIDs are the processes of endpoints, by the endpoint's name; plinth's own are known. The first
	// is the endpoint itself, whose memory is measured. CPU time and writes to disks are those of
	// all, such as the database server's of a shim.
	PIDs map[string][]int
	// Quick takes short rounds and few keys, to see that everything works.
	Quick bool
	// Command is that of plinth's endpoint, without its flags.
	Command []string
	// Arguments are added to Command.
	Arguments []string
	// Version is plinth's own, for the report.
	Version string
	// Progress is a terminal that shows what is being done; nil: nothing.
	Progress io.Writer
}

// Other is an endpoint that is running already.
type Other struct {
	Name string // that begins with etcd or kine if the targets for these are to be judged
	URL  string
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
	watchers      int
	watchRounds   int
	watch         time.Duration
	churners      int // writers
	churned       int // keys
	resources     int // that churned keys belong to; each watcher watches one
	compactions   int // while there is churn
}

var (
	full = scale{rounds: 9, round: 500 * time.Millisecond, starts: 5, settle: 40 * time.Second, idle: 10 * time.Second, objects: 10_000, keys: 100_000, page: 500, objectRounds: 5,
		watchers: 100, watchRounds: 3, watch: 4 * time.Second, churners: 200, churned: 1000, resources: 10, compactions: 10}
	quick = scale{rounds: 2, round: 100 * time.Millisecond, starts: 1, settle: 100 * time.Millisecond, idle: 300 * time.Millisecond, objects: 300, keys: 1000, page: 50, objectRounds: 2,
		watchers: 10, watchRounds: 1, watch: 500 * time.Millisecond, churners: 20, churned: 100, resources: 2, compactions: 3}
)

// run is one Run.
type run struct {
	Options
	scale     scale
	dir       string // of temporary files, removed at the end
	prefix    string // of all keys
	progress  measure.Progress
	report    *figures.Comparison
	endpoints []*endpoint
	servers   []*endpoint // kube-apiservers
}

// Run measures everything and writes the report. If it fails half-way or ctx ends, what was
// measured until then is written, and the report comes with the error.
func Run(ctx context.Context, o Options) (_ *figures.Comparison, err error) {
	r, err := newRun(o)
	if err != nil {
		return nil, err
	}
	if r.dir, err = measure.MakeDirs(o.Dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	defer r.progress.Clear()
	err = r.measure(ctx)
	r.report.Finish(r.measured())
	if ctx.Err() != nil {
		r.report.Interrupted = true
		err = measure.ErrInterrupted
	}
	if len(r.report.Rows) == 0 {
		return nil, err
	}
	return r.report, errors.Join(err, r.report.Write(o.Dir, "etcd"))
}

func newRun(o Options) (*run, error) {
	if o.Dir == "" {
		o.Dir = "bench-out"
	}
	if o.Churn == 0 {
		o.Churn = 10 * time.Second
	}
	r := &run{Options: o, scale: full, progress: measure.Progress{W: o.Progress, Begun: time.Now()}}
	if o.Quick {
		r.scale = quick
	}
	if o.Keys > 0 {
		r.scale.keys = max(o.Keys, r.scale.objects)
	}
	r.prefix = "/registry/plinth-bench-" + strings.ToLower(rand.Text()[:8]) + "/"
	r.report = &figures.Comparison{Run: figures.NewRun(o.Version, r.progress.Begun, o.Quick)}
	if len(o.DSNs)+len(o.Others)+len(o.Servers) == 0 {
		return nil, errors.New("there is nothing to measure")
	}
	for _, dsn := range o.DSNs {
		if err := dialects.Check(dsn, dialects.Options{}); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// measured are all endpoints.
func (r *run) measured() (all []figures.Endpoint) {
	for _, e := range append(r.endpoints, r.servers...) {
		all = append(all, e.Endpoint)
	}
	return all
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

func (r *run) measure(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.disconnect(ctx)) }()
	if err := r.connect(ctx); err != nil {
		return err
	}
	return steps.Measure(ctx, r, r.Only, r.progress.Say)
}

// connect starts plinth on each database and connects to all endpoints.
func (r *run) connect(ctx context.Context) error {
	for _, other := range r.Others {
		r.progress.Say("%s: connect", other.Name)
		e, err := dial(ctx, other, r.TLS)
		if err != nil {
			return err
		}
		e.pids = r.PIDs[other.Name]
		r.endpoints = append(r.endpoints, e)
	}
	for _, other := range r.Servers {
		r.progress.Say("%s: connect", other.Name)
		e, err := dialServer(ctx, other)
		if err != nil {
			return err
		}
		r.servers = append(r.servers, e)
	}
	for i, dsn := range r.DSNs {
		r.progress.Say("%s: start", dialects.Scheme(dsn))
		e, err := r.startOwn(ctx, dsn)
		if err != nil {
			return fmt.Errorf("%s: %w", dialects.Scheme(dsn), err)
		}
		e.pids = append(e.pids, r.PIDs[e.Name]...)
		r.endpoints = append(r.endpoints[:i], append([]*endpoint{e}, r.endpoints[i:]...)...)
	}
	return nil
}

// disconnect deletes the keys of the run from endpoints that are not plinth's own, and ends plinth.
func (r *run) disconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var errs []error
	for _, e := range r.endpoints {
		if e.own == nil {
			r.progress.Say("%s: delete what was written", e.Name)
			e.clean(ctx, r.prefix)
		}
		errs = append(errs, e.close(ctx))
	}
	return errors.Join(errs...)
}
