package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/bench/scalebench"
	"github.com/plinth-io/plinth/server"
)

const benchScaleHelp = `Measure how the cost of plinth grows with the number of objects: with 1,000 ConfigMaps of 1 KiB, ten
times as many, and so on up to --objects. At each number the command restarts plinth and measures
the time until it is ready, its memory, get, create, update, the delay of watches, a page of 500 of
a list, the whole list, and lists of 1% by label and of one object by field. The first list by label
is measured separately, because it builds an index. The command prints a table, and writes charts
(SVG) and the figures (JSON) to the output directory.

The command starts plinths by itself: without --dsn, on SQLite on the disk of the output directory,
and on the servers that PLINTH_TEST_POSTGRES and PLINTH_TEST_MYSQL name, if these are set. On a server
it creates scratch databases and drops them at the end.

The command ends if a list does not have all objects. A run up to 100,000 objects takes about three
minutes for each database, up to a million about half an hour; a million objects need about 2 GB on
the disk, and the memory that the table shows. Memory is not measured where there is no /proc.`

// benchScaleFlags are flags that become Options.
type benchScaleFlags struct {
	o      scalebench.Options
	most   int
	memory memorySize
}

func newBenchScale() *cobra.Command {
	var f benchScaleFlags
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure how plinth's cost grows with the number of objects",
		Long:  benchScaleHelp,
		Args:  noArgs,
		Example: `  plinth bench scale
  plinth bench scale --objects 1000000 --dsn postgres://plinth@db.example.com/plinth --out results`,
	}
	cmd.RunE = benchRun(f.check, &f.o, runBenchScale)
	addInOrder(cmd,
		dsnsFlag(&f.o.DSNs, "`database` to measure plinth on, written as for serve; repeat the flag for several"),
		objectsFlag(number(&f.most, 100_000), "highest `number` of objects, 1,000 to 10,000,000"),
		memoryFlag(&f.memory, "`size` that plinth is to keep within, as the flag of serve, such as 512MiB; by default it gets none"),
		outFlag(&f.o.Dir, chartsHelp),
		quickFlag(&f.o.Quick, "take short rounds, to see that everything works"),
	)
	withVariables(cmd)
	return cmd
}

// check completes the options.
func (f *benchScaleFlags) check() (err error) {
	if f.o.DSNs, err = benchDSNs(f.o.DSNs, false); err != nil {
		return err
	}
	if f.most < 1000 || f.most > 10_000_000 || f.most%1000 != 0 {
		return usagef("--objects: %d: write a multiple of 1000 up to 10000000", f.most)
	}
	if f.memory > 0 && f.memory < server.LeastMemory {
		return usagef("--memory %v: write at least %d MiB", &f.memory, server.LeastMemory>>20)
	}
	f.o.Counts, f.o.Memory = scaleCounts(f.most), f.memory.String()
	return nil
}

// scaleCounts are the powers of ten from a thousand, and the highest number.
func scaleCounts(most int) (counts []int) {
	for n := 1000; n < most; n *= 10 {
		counts = append(counts, n)
	}
	return append(counts, most)
}

func runBenchScale(ctx context.Context, o scalebench.Options, stdout, stderr io.Writer) error {
	o.Log = stderr
	return runReported(&o.Options, stdout, stderr, "", func() (*scalebench.Report, error) { return scalebench.Run(ctx, o) }, "serve")
}
