package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/plinth-io/plinth/bench"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/memory"
)

const benchHelp = `Measure plinth on this machine and compare it with the limits of the machine: the store with the
bare database driver, and the server with handlers that do nothing. The command prints a table. It
writes charts (SVG) and the figures (JSON) to the output directory.

Without --dsn, the command measures SQLite, on the disk of the output directory. It also
measures the servers that PLINTH_TEST_POSTGRES and PLINTH_TEST_MYSQL name, if these are set.
On a server it creates scratch databases and drops them at the end. It touches no other
database.

A run takes about five minutes for each database. The machine should do nothing else
meanwhile. With --quick it takes about 20 seconds; the figures of a quick run are not
compared with the targets.

With --against the command measures plinth beside other servers of the Kubernetes API, such as
kube-apiserver on etcd or kine, which must be running. All take turns under the same load: gets,
lists, creates, updates, patches, applies and deletes of ConfigMaps, watches, churn, and nodes with
their leases, status and pods. A ratio is the median of the ratios of neighbouring rounds. Every
event of a watch is checked: lost, repeated and disordered ones are counted. CPU time and writes to
disks are those of plinth's own process and of the processes that --pid names, with all that they
have started; name database servers too. Memory is that of the server alone: of plinth's process, or
of the first that --pid names. The client must be an administrator. The command writes to the other
servers, in a namespace and to nodes called plinth-bench-…, which it deletes at the end. A run takes
about six minutes for each server. --dsn none measures no plinth.

Memory is in MiB. The exit code is 0 if everything could be measured, whether or not the
targets are met, and 1 if something failed.`

func newBench() *cobra.Command {
	var o bench.Options
	var against benchAgainstFlags
	onlyAgainst := against.flags()
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure plinth on this machine",
		Long:  benchHelp,
		Args:  noArgs,
		Example: `  plinth bench
  plinth bench --dsn sqlite://plinth.db --dsn postgres://plinth@db.example.com/plinth --out results
  plinth bench --against etcd=on-etcd.conf --pid etcd=4711 --pid etcd=4712 --disk etcd=/var/lib/etcd`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(against.against) > 0 {
				if err := against.check(o.DSNs); err != nil {
					return err
				}
				return runBenchAgainst(cmd.Context(), &o, against.o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			for _, f := range onlyAgainst {
				if cmd.Flags().Changed(f.Name) {
					return usagef("--%s: write --against, too: it is only for measuring beside others", f.Name)
				}
			}
			return runBench(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addInOrder(cmd, slices.Concat(
		[]Flag{
			dsnsFlag(&o.DSNs, "`database` to measure, written as for serve; repeat the flag for several"),
			outFlag(&o.Dir, chartsHelp),
			quickFlag(&o.Quick, quickHelp),
			againstFlag(&against.against, "`NAME=ADDRESS` of a server of the Kubernetes API to measure beside plinth: a URL or the file of a kubeconfig; repeat the flag for several"),
		},
		onlyAgainst,
		[]Flag{{Name: "profiles", Set: boolean(&o.Profiles, false), Hidden: true, Help: "leave CPU profiles of the server in the output directory"}},
	)...)
	withVariables(cmd)
	cmd.AddCommand(newBenchEtcd(), newBenchIdle(), newBenchScale(), newBenchTorture())
	return cmd
}

// newBenchChild is the hidden command of the processes that bench starts and measures.
func newBenchChild() *cobra.Command {
	return &cobra.Command{
		Use:    "bench-child",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
			defer memory.Keep()() // as serve does
			return bench.Child(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func runBench(ctx context.Context, o bench.Options, stdout, stderr io.Writer) error {
	for _, dsn := range o.DSNs {
		if err := dialects.Check(dsn, dialects.Options{}); err != nil {
			return usagef("--dsn: %v", err)
		}
	}
	if len(o.DSNs) == 0 {
		o.DSNs = benchDatabases()
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Child = []string{exe, "bench-child"}
	o.Version = server.Release()
	if term.IsTerminal(int(os.Stderr.Fd())) {
		o.Progress = os.Stderr
	}
	fmt.Fprintln(stderr, announceBench(&o))
	report, err := bench.Run(ctx, o)
	if report == nil {
		return err
	}
	return errors.Join(err, printReport(stdout, report, report.Seconds, report.Files))
}

// benchDatabases are SQLite and the servers of this project's tests.
func benchDatabases() []string {
	dsns := []string{"sqlite://plinth.db"}
	for _, name := range []string{"PLINTH_TEST_POSTGRES", "PLINTH_TEST_MYSQL"} {
		if dsn := os.Getenv(name); dsn != "" {
			dsns = append(dsns, dsn)
		}
	}
	return dsns
}

// announceBench says what is going to be measured, how long that takes, and where results go.
func announceBench(o *bench.Options) string {
	names := make([]string, len(o.DSNs))
	for i, dsn := range o.DSNs {
		names[i] = dialects.Scheme(dsn)
	}
	long := fmt.Sprintf("%d minutes", 5*len(names))
	if o.Quick {
		long = fmt.Sprintf("%d seconds", 20*len(names))
	}
	return fmt.Sprintf("Measuring %s, which takes about %s. Charts and figures will be in %s.", strings.Join(names, ", "), long, o.Dir)
}

// printReport prints the table of a report, how long it took, and the files that were written.
func printReport(w io.Writer, r interface{ WriteTable(io.Writer) error }, seconds float64, files []string) error {
	if err := r.WriteTable(w); err != nil {
		return err
	}
	took := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(w, "\nThe measurement took %s. Charts and figures:\n", took)
	for _, file := range files {
		fmt.Fprintf(w, "  %s\n", file)
	}
	return nil
}
