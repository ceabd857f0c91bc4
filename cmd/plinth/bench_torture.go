package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/bench/torture"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/logging"
)

const benchTortureHelp = `Inject faults and check plinth's guarantees. Clients create, read, list, update, patch, apply,
delete and watch objects while one to three plinths on one database have faults. All answers and
events are checked against the log of changes that the database has in the end.

The command starts the plinths itself, on a scratch database, which it creates and drops: with --dsn
on the server of the database that DSN names, where it touches no other database; else a SQLite file
in the output directory. Replicas need Postgres, MySQL or MariaDB.

Faults are, if --faults does not choose:
  kill, stop               kill -9 of a plinth, SIGSTOP of one for longer than its timeouts
  cut-clients, lose-answer its clients' connections are cut, its answers lost
  cut, freeze, delay       connections to the database are cut, hold everything back, or
                           delay it by 50 to 500 ms
  lose-commit              the database's answer to a COMMIT is lost

The command checks these guarantees: acknowledged writes are there, and refused writes are not;
calls on each object are linearizable, and reads of the newest state see everything that was
answered earlier; a list, on all its pages, is the exact state at its revision; a watch gets every
change once and in order, from any revision seen at any replica; all changes up to a bookmark were
sent before it; old versions stay as long as --history says; and the memory of each plinth is equal
to the database.

The same seed leads to the same calls and faults, as far as answers arrive in the same order. If a
guarantee is broken the command leaves the history, a small part of it that still shows the fault,
and a drawing (HTML) of that in the output directory. The exit code is 0 if every guarantee held,
and 1 if not.`

// mostTorturers bounds the clients: what more of them are told takes longer to check than to play.
const mostTorturers = 100

// benchTortureFlags are flags that become Options.
type benchTortureFlags struct {
	o       torture.Options
	seconds int
}

func newBenchTorture() *cobra.Command {
	var f benchTortureFlags
	cmd := &cobra.Command{
		Use:   "torture",
		Short: "Inject faults and check plinth's guarantees",
		Long:  benchTortureHelp,
		Args:  noArgs,
		Example: `  plinth bench torture --seconds 60
  plinth bench torture --dsn postgres://plinth@db.example.com/plinth --replicas 3 --seconds 3600 --seed 7
  plinth bench torture --faults kill,stop --out results`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
			return runBenchTorture(cmd.Context(), f.o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addInOrder(cmd,
		dsnFlagOf(text(&f.o.DSN, "sqlite://plinth.db"), "`database` on whose server a scratch database is created for the run, written as for serve"),
		Flag{Name: "replicas", Set: number(&f.o.Replicas, 1), Help: "`number` of plinths on the database, 1 to 3"},
		Flag{Name: "seconds", Set: number(&f.seconds, 60), Help: "for how many `seconds` faults are injected"},
		Flag{Name: "clients", Set: number(&f.o.Clients, 6), Help: "`number` of clients that call; half as many watch"},
		Flag{Name: "seed", Set: unsigned64(&f.o.Seed, 0), Help: "`number` that determines calls and faults; 0: a different one each time"},
		Flag{Name: "faults", Set: list(&f.o.Faults, nil),
			Help: "`names` of the faults to inject, separated by commas: kill, stop, cut-clients, lose-answer, and with a database server cut, freeze, delay, lose-commit; by default all that are possible; none: no faults"},
		outFlag(&f.o.Dir, "`directory` that files are written to; it decides which disk SQLite is on"),
	)
	withVariables(cmd)
	return cmd
}

// check completes the options.
func (f *benchTortureFlags) check() error {
	if err := dialects.Check(f.o.DSN, dialects.Options{}); err != nil {
		return usagef("--dsn: %v", err)
	}
	switch {
	case f.o.Replicas < 1 || f.o.Replicas > 3:
		return usagef("--replicas %d: write a number from 1 to 3", f.o.Replicas)
	case f.o.Replicas > 1 && dialects.Scheme(f.o.DSN) == "sqlite":
		return usagef("--replicas %d: a SQLite file is for one plinth at a time: name another database in --dsn", f.o.Replicas)
	case f.seconds < 1:
		return usagef("--seconds %d: write 1 or more", f.seconds)
	case f.o.Clients < 1 || f.o.Clients > mostTorturers:
		return usagef("--clients %d: write a number from 1 to %d", f.o.Clients, mostTorturers)
	}
	possible := f.o.Possible()
	for _, name := range f.o.Faults {
		if !slices.Contains(possible, name) && !(name == "none" && len(f.o.Faults) == 1) {
			return usagef("--faults: %q: on %s write some of %s, or none alone", name, dialects.Scheme(f.o.DSN), strings.Join(possible, ", "))
		}
	}
	if f.o.For = time.Duration(f.seconds) * time.Second; f.o.Seed == 0 {
		f.o.Seed = uint64(time.Now().Unix())
	}
	return nil
}

func runBenchTorture(ctx context.Context, o torture.Options, stdout, stderr io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Command, o.Progress = []string{exe, "serve"}, stderr
	report, err := torture.Run(ctx, o)
	if report == nil {
		return err
	}
	report.Write(stdout)
	if err == nil && len(report.Broken) > 0 {
		err = fmt.Errorf("a guarantee is broken: %s; see %s", report.Broken[0].Guarantee, strings.Join(report.Files, " "))
	}
	return err
}
