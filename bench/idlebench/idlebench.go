// Package idlebench measures what a cluster writes to disks that does nothing: its nodes renew their
// Leases and send their status, and its components renew theirs. It sends the requests of these
// at their pace to plinths that it starts, and to other servers of the Kubernetes API beside them.
//
// The package knows of plinth what any client knows, and its flags. No other package but cmd/plinth may
// import it.
package idlebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
)

// Options say what a run measures.
type Options struct {
	DSNs     []string        // databases to measure plinth on
	Delays   []time.Duration // of plinth's --lease-commit-delay
	Others   []Other         // servers beside plinth, which run already
	Nodes    []int
	Duration time.Duration // of the load for each row of the table
	// PIDs are processes that write for a database or server, by its name: those of database servers,
	// and of an etcd. plinth's own is known.
	PIDs     map[string][]int
	Command  []string // of plinth serve
	Dir      string   // of temporary files
	Progress func(format string, a ...any)
}

// Other is a server that runs already.
type Other struct{ Name, Kubeconfig string }

// Row is what was measured of one server with so many nodes.
type Row struct {
	Name    string
	Nodes   int
	Delay   time.Duration // of renewals; negative: the server has no such thing
	Writes  int           // requests that were answered
	Slowest time.Duration // answer to a renewal
	Written int64         // bytes
	Known   bool          // Written is
	Took    time.Duration
}

// PerDay is what is written in a day at this pace.
func (r *Row) PerDay() float64 { return float64(r.Written) * float64(24*time.Hour) / float64(r.Took) }

// Run measures everything, one after the other. Rows come with an error, too.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	dir, err := measure.MakeDirs(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, nodes := range o.Nodes {
		for _, dsn := range o.DSNs {
			for _, delay := range o.Delays {
				o.Progress("plinth on %s, %d nodes, renewals wait for %v", dialects.Scheme(dsn), nodes, delay)
				row, err := o.measurePlinth(ctx, dir, dsn, nodes, delay)
				if err != nil {
					return rows, fmt.Errorf("plinth on %s: %w", dialects.Scheme(dsn), err)
				}
				rows = append(rows, row)
			}
		}
		for _, other := range o.Others {
			o.Progress("%s, %d nodes", other.Name, nodes)
			row, err := o.measureOther(ctx, other, nodes)
			if err != nil {
				return rows, fmt.Errorf("%s: %w", other.Name, err)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (o *Options) measurePlinth(ctx context.Context, dir, dsn string, nodes int, delay time.Duration) (row Row, err error) {
	s, err := measure.NewScratch(ctx, dsn, dir)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, s.Drop(context.WithoutCancel(ctx))) }()
	data, err := os.MkdirTemp(dir, "data-")
	if err != nil {
		return row, err
	}
	p, err := measure.StartPlinth(ctx, append(slices.Clone(o.Command), "--lease-commit-delay", delay.String()), data, s.DSN)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	name := dialects.Scheme(dsn)
	row, err = o.measure(ctx, p.Kubeconfig, nodes, append([]int{p.PID()}, o.PIDs[name]...))
	row.Name, row.Delay = "plinth on "+name, delay
	// What the database server writes for plinth is not known without its processes.
	row.Known = row.Known && (name == "sqlite" || len(o.PIDs[name]) > 0)
	return row, err
}

func (o *Options) measureOther(ctx context.Context, other Other, nodes int) (Row, error) {
	row, err := o.measure(ctx, other.Kubeconfig, nodes, o.PIDs[other.Name])
	row.Name, row.Delay = other.Name, -1
	return row, err
}

// measure measures a server while a cluster of so many nodes does nothing.
func (o *Options) measure(ctx context.Context, kubeconfig string, nodes int, pids []int) (row Row, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return row, err
	}
	c, err := newCluster(ctx, config, nodes)
	if c != nil {
		defer func() { err = errors.Join(err, c.remove(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		return row, err
	}
	before, known := measure.Spend(pids)
	begun := time.Now()
	if err := c.idle(ctx, o.Duration); err != nil {
		return row, err
	}
	took := time.Since(begun)
	after, _ := measure.Spend(pids)
	return Row{
		Nodes: nodes, Writes: int(c.writes.Load()), Slowest: time.Duration(c.slowest.Load()),
		Written: after.Written - before.Written, Known: known, Took: took,
	}, nil
}

// WriteTable writes rows for people.
func WriteTable(w io.Writer, rows []Row) error {
	allKnown := true
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "server\tnodes\trenewals wait\twrites\tslowest renewal\tbytes for each\tMB a day")
	for i := range rows {
		r := &rows[i]
		delay, each, day := "-", "not known", "not known"
		if r.Delay >= 0 {
			delay = r.Delay.String()
		}
		allKnown = allKnown && r.Known
		if r.Known {
			each, day = fmt.Sprintf("%d", r.Written/int64(max(r.Writes, 1))), fmt.Sprintf("%.0f", r.PerDay()/1e6)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%s\t%s\t%s\n", r.Name, r.Nodes, delay, r.Writes, r.Slowest.Round(100*time.Microsecond), each, day)
	}
	if err := t.Flush(); err != nil || allKnown {
		return err
	}
	_, err := fmt.Fprintln(w, "What a database server writes is known if --pid names its process, such as --pid mysql=4711, on Linux.")
	return err
}
