package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/bench/idlebench"
	"github.com/plinth-io/plinth/dialects"
)

const benchIdleHelp = `Measure how much an idle cluster writes to disks: nodes that renew their Leases every 10 seconds and
send their status every 5 minutes, and a controller manager and a scheduler that renew their Leases
every 2 seconds. The command prints a table with the bytes that processes caused to be written, as
/proc of Linux counts them, and what that makes in a day.

The command starts plinths by itself: without --dsn, on SQLite on the disk of the output directory,
and on the servers that PLINTH_TEST_POSTGRES and PLINTH_TEST_MYSQL name, if these are set. On a server
it creates scratch databases and drops them at the end. Name the process of the database server in
--pid, as sqlite, postgres or mysql are called, such as postgres=4711; the processes that it has
started count, too. These plinths keep old versions as plinth serve does by default; the variable
PLINTH_KEEP=none measures without.

Servers of the Kubernetes API on etcd or kine are measured beside them, with --kubeconfig, and --pid
for the processes that write. What the command creates there is called plinth-bench-…, and is
deleted at the end.`

// benchIdleFlags are flags that become Options.
type benchIdleFlags struct {
	o             idlebench.Options
	servers, pids []string
}

func newBenchIdle() *cobra.Command {
	var f benchIdleFlags
	cmd := &cobra.Command{
		Use:   "idle",
		Short: "Measure how much an idle cluster writes",
		Long:  benchIdleHelp,
		Args:  noArgs,
		Example: `  plinth bench idle
  plinth bench idle --dsn sqlite://plinth.db --nodes 10 --duration 10m
  plinth bench idle --kubeconfig etcd=on-etcd.conf --pid etcd=4711`,
	}
	cmd.RunE = benchRun(f.check, &f.o, runBenchIdle)
	addInOrder(cmd, f.flags()...)
	withVariables(cmd)
	return cmd
}

func (b *benchIdleFlags) flags() []Flag {
	return []Flag{
		dsnsFlag(&b.o.DSNs, "`database` to measure plinth on, written as for serve; repeat the flag for several; none: no plinth"),
		nodesFlag(numbers(&b.o.Nodes, []int{10, 100}), "`numbers` of nodes to measure with, separated by commas"),
		leaseCommitDelayFlag(periods(&b.o.Delays, []time.Duration{0, time.Second}), "`durations` of plinth's flag of that name to measure with, separated by commas"),
		{Name: "duration", Set: period(&b.o.Duration, time.Minute), Help: "how long each measurement takes"},
		kubeconfigFlagOf(repeated(&b.servers, nil), "`NAME=FILE` of a kube-apiserver that runs already, to measure beside plinth; repeat the flag for several"),
		pidFlag(&b.pids, "`NAME=PID` of a process whose writes count as those of a database or of a server of --kubeconfig; repeat the flag for several"),
		outFlag(&b.o.Dir, "`directory` of temporary files; it decides which disk SQLite is measured on"),
	}
}

// check completes the options by the flags that have a form of their own.
func (b *benchIdleFlags) check() (err error) {
	if b.o.DSNs, err = benchDSNs(b.o.DSNs, true); err != nil {
		return err
	}
	var names []string
	for _, dsn := range b.o.DSNs {
		names = append(names, dialects.Scheme(dsn))
	}
	if names, err = benchOthers(&b.o.Others, "kubeconfig", b.servers, nil, "NAME=FILE, such as etcd=kubeconfig", names...); err != nil {
		return err
	}
	if len(names) == 0 {
		return usagef("--dsn none leaves nothing to measure; write --kubeconfig NAME=FILE")
	}
	if b.o.Duration < time.Second {
		return usagef("--duration: write at least 1s")
	}
	if slices.ContainsFunc(b.o.Nodes, func(n int) bool { return n < 1 || n > 999 }) {
		return usagef("--nodes: write numbers from 1 to 999")
	}
	b.o.PIDs, err = benchProcesses(b.pids, names)
	return err
}

func runBenchIdle(ctx context.Context, o idlebench.Options, stdout, stderr io.Writer) (err error) {
	if o.Command, err = ownCommand("serve"); err != nil {
		return err
	}
	o.Log = stderr
	rows, err := idlebench.Run(ctx, o)
	if len(rows) == 0 {
		return err
	}
	return errors.Join(err, idlebench.WriteTable(stdout, rows))
}
