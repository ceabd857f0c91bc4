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
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
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
meanwhile. With --quick it takes about 10 seconds; the figures of a quick run are not
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

--only deployments measures whole control planes instead: 3,000 pods of a Deployment on 100 nodes, whose
work the command does, until they are ready, until a rollout has replaced them, and until they are gone.
plinth runs with --cluster then. The other servers need a controller manager and a scheduler, whose
processes --pid names, too; the memory is that of all of them.

Memory is in MiB. The exit code is 0 if everything could be measured, whether or not the
targets are met, and 1 if something failed.`

func newBench() *cobra.Command {
	var o measure.Options
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
				if err := against.check(&o); err != nil {
					return err
				}
				logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
				return runBenchAgainst(cmd.Context(), against.o, cmd.OutOrStdout(), cmd.ErrOrStderr())
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

func runBench(ctx context.Context, o measure.Options, stdout, stderr io.Writer) (err error) {
	if o.DSNs, err = benchDSNs(o.DSNs, false); err != nil {
		return err
	}
	return runReported(&o, stdout, stderr, announceBench(&o), func() (*bench.Report, error) { return bench.Run(ctx, o) }, "bench-child")
}

// benchRun is the RunE of a benchmark: it checks the flags, which set o, and runs the benchmark.
func benchRun[O any](check func() error, o *O, run func(ctx context.Context, o O, stdout, stderr io.Writer) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := check(); err != nil {
			return err
		}
		logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
		return run(cmd.Context(), *o, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
}

// runReported completes the options of a benchmark whose processes run a subcommand of this program, runs the benchmark,
// and prints its report.
func runReported[R interface {
	comparable
	WriteTable(io.Writer) error
	About() *figures.Run
}](o *measure.Options, stdout, stderr io.Writer, announcement string, run func() (R, error), subcommand ...string) (err error) {
	if o.Command, err = ownCommand(subcommand...); err != nil {
		return err
	}
	o.Version, o.Progress = server.Release(), progressTerminal()
	fmt.Fprint(stderr, announcement)
	report, err := run()
	var none R
	if report == none {
		return err
	}
	if e := report.WriteTable(stdout); e != nil {
		return errors.Join(err, e)
	}
	about := report.About()
	fmt.Fprintf(stdout, "\nThe measurement took %s. Charts and figures:\n  %s\n", time.Duration(about.Seconds*float64(time.Second)).Round(time.Second), strings.Join(about.Files, "\n  "))
	return err
}

// ownCommand is the command line that runs this program with arguments.
func ownCommand(args ...string) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return append([]string{exe}, args...), nil
}

// progressTerminal is where a benchmark shows its progress: standard error if it is a terminal, else nowhere.
func progressTerminal() io.Writer {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		return os.Stderr
	}
	return nil
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

// benchDSNs are the databases that --dsn names, by default benchDatabases. If mayBeNone, "none" is none of them.
func benchDSNs(dsns []string, mayBeNone bool) ([]string, error) {
	if mayBeNone && slices.Contains(dsns, "none") {
		return nil, nil
	}
	for _, dsn := range dsns {
		if err := dialects.Check(dsn, dialects.Options{}); err != nil {
			return nil, usagef("--dsn: %v", err)
		}
	}
	if len(dsns) == 0 {
		return benchDatabases(), nil
	}
	return dsns, nil
}

// announceBench says what is going to be measured, how long that takes, and where results go.
func announceBench(o *measure.Options) string {
	names := make([]string, len(o.DSNs))
	for i, dsn := range o.DSNs {
		names[i] = dialects.Scheme(dsn)
	}
	long := fmt.Sprintf("%d minutes", 5*len(names))
	if o.Quick {
		long = fmt.Sprintf("%d seconds", 10*len(names))
	}
	return fmt.Sprintf("Measuring %s, which takes about %s. Charts and figures will be in %s.\n", strings.Join(names, ", "), long, o.Dir)
}
