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
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
)

// Options say what a run measures.
type Options struct {
	measure.Options
	Delays   []time.Duration // of plinth's --lease-commit-delay
	Others   []measure.Other // servers beside plinth, which run already, with their kubeconfigs
	Nodes    []int
	Duration time.Duration // of the load for each row of the table
	// PIDs are processes that write for a database or server, by its name: those of database servers,
	// and of an etcd. plinth's own is known.
	PIDs map[string][]int
	Log  io.Writer // gets a line for each row
}

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
				fmt.Fprintf(o.Log, "plinth on %s, %d nodes, renewals wait for %v\n", dialects.Scheme(dsn), nodes, delay)
				row, err := o.measurePlinth(ctx, dir, dsn, nodes, delay)
				if err != nil {
					return rows, fmt.Errorf("plinth on %s: %w", dialects.Scheme(dsn), err)
				}
				rows = append(rows, row)
			}
		}
		for _, other := range o.Others {
			fmt.Fprintf(o.Log, "%s, %d nodes\n", other.Name, nodes)
			row, err := o.measure(ctx, other.At, nodes, o.PIDs[other.Name])
			if err != nil {
				return rows, fmt.Errorf("%s: %w", other.Name, err)
			}
			row.Name, row.Delay = other.Name, -1
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (o *Options) measurePlinth(ctx context.Context, dir, dsn string, nodes int, delay time.Duration) (row Row, err error) {
	own, err := apiload.StartOwn(ctx, append(slices.Clone(o.Command), "--lease-commit-delay", delay.String()), dir, dsn)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, own.Stop(ctx)) }()
	others := o.PIDs[own.Name]
	row, err = o.measure(ctx, own.Kubeconfig, nodes, append([]int{own.PID()}, others...))
	row.Name, row.Delay = "plinth on "+own.Name, delay
	// What the database server writes for plinth is not known without its processes.
	row.Known = row.Known && (own.Name == "sqlite" || len(others) > 0)
	return row, err
}

// measure measures a server while a cluster of so many nodes does nothing.
func (o *Options) measure(ctx context.Context, kubeconfig string, nodes int, pids []int) (row Row, err error) {
	clients, err := apiload.DialFile(ctx, kubeconfig, measure.Connections, "/version")
	if err != nil {
		return row, err
	}
	defer clients.Close()
	n := &apiload.Nodes{Clients: clients, Count: nodes, Leaders: 2, Prefix: "plinth-bench-"}
	defer func() { err = errors.Join(err, n.Remove(context.WithoutCancel(ctx))) }()
	if err := n.Register(ctx); err != nil {
		return row, err
	}
	before, known := measure.Spend(pids)
	renewals, statuses, err := n.Heartbeats(ctx, o.Duration)
	if err != nil {
		return row, err
	}
	after, _ := measure.Spend(pids)
	return Row{
		Nodes: nodes, Writes: renewals.Ops + statuses, Slowest: slices.Max(renewals.Samples),
		Written: after.Written - before.Written, Known: known, Took: renewals.Took,
	}, nil
}

// WriteTable writes rows for people.
func WriteTable(w io.Writer, rows []Row) error {
	allKnown := true
	t := figures.Table{{"server", "nodes", "renewals wait", "writes", "slowest renewal", "bytes for each", "MB a day"}}
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
		t.Add(r.Name, fmt.Sprint(r.Nodes), delay, fmt.Sprint(r.Writes), r.Slowest.Round(100*time.Microsecond).String(), each, day)
	}
	if err := t.Write(w); err != nil || allKnown {
		return err
	}
	_, err := fmt.Fprintln(w, "What a database server writes is known if --pid names its process, such as --pid mysql=4711, on Linux.")
	return err
}
