package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/plinth-io/plinth/bench"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/quiet"
)

const benchHelp = `Measure plinth on this machine, beside what the machine can do: the store beside the
bare database driver, the server beside handlers that do nothing. One table comes out,
and charts (SVG) and the figures (JSON) in the output directory.

Without --dsn, SQLite is measured on the disk that the output directory is on, and the
servers that PLINTH_TEST_POSTGRES and PLINTH_TEST_MYSQL name if they are set. Servers are
asked for scratch databases, which are dropped at the end; nothing else is touched.

It takes some four minutes for each database and wants a machine that does nothing else.`

func newBench() *cobra.Command {
	var o bench.Options
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure plinth on this machine",
		Long:  benchHelp,
		Args:  noArgs,
		Example: `  plinth bench
  plinth bench --dsn sqlite://plinth.db --dsn postgres://plinth@db.example.com/plinth --out results`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applyEnv(cmd); err != nil {
				return err
			}
			return runBench(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.DSNs, "dsn", nil, "`database` to measure, as for serve; repeat it for several")
	f.StringVar(&o.Dir, "out", "bench-out", "`directory` for charts and figures")
	f.BoolVar(&o.Quick, "quick", false, "take seconds instead of minutes, to see that it works")
	f.BoolVar(&o.Profiles, "profiles", false, "leave CPU profiles of the server in the output directory")
	if err := f.MarkHidden("profiles"); err != nil {
		panic(err) // not a flag
	}
	documentEnv(cmd)
	return cmd
}

// newBenchChild is what bench starts to have something to measure.
func newBenchChild() *cobra.Command {
	return &cobra.Command{
		Use:    "bench-child",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			quiet.Libraries(os.Stderr)
			return bench.Child(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func runBench(ctx context.Context, o bench.Options, stdout io.Writer) error {
	for _, dsn := range o.DSNs {
		if err := dialects.Check(dsn, dialects.Options{}); err != nil {
			return usagef("%v", err)
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
	report, err := bench.Run(ctx, o)
	if report == nil {
		return err
	}
	return errors.Join(err, printBench(stdout, report))
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

func printBench(w io.Writer, r *bench.Report) error {
	if err := r.WriteTable(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nmeasured in %s; written:\n", (time.Duration(r.Seconds) * time.Second).String())
	for _, file := range r.Files {
		fmt.Fprintf(w, "  %s\n", file)
	}
	return nil
}
