package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/bench/etcdbench"
	"github.com/plinth-io/plinth/bench/figures"
)

const benchEtcdHelp = `Measure plinth's etcd endpoint (plinth etcd) on this machine, beside other endpoints such as
etcd and kine, with the requests that a kube-apiserver sends. The command prints a table with
ratios. It writes charts (SVG) and the figures (JSON) to the output directory.

The command starts plinth etcd by itself: without --dsn, on SQLite on the disk of the output
directory, and on the servers that PLINTH_TEST_POSTGRES and PLINTH_TEST_MYSQL name, if these are
set. On a server it creates scratch databases and drops them at the end. Other endpoints must be
running. Name them etcd… and kine…, such as kine-postgres, to have their ratios compared with
plinth's targets.

The command writes to the other endpoints, so do not name one that is in use. All keys are below
/registry/plinth-bench-…, and the command deletes them at the end.

With --kubeconfig the command measures kube-apiservers, too, which must be running on the endpoints that
are to be compared: creating, updating and listing ConfigMaps in a namespace that it deletes at the end.
Name them sqlite, postgres, mysql, etcd… or kine…, after what they run on.

All endpoints take turns in short rounds, and a ratio is the median of the ratios of neighbouring
rounds. Every event of a watch is checked: lost, repeated and disordered ones are counted. CPU time
and writes to disks are those of plinth's own process and of the processes that --pid names, with
all that they have started; name database servers too. Memory is that of the endpoint alone: of
plinth's process, or of the first that --pid names.

A run takes about five minutes for each endpoint, a shim longer, because it has to be filled. The
machine should do nothing else meanwhile. With --quick the figures are not compared with the
targets. The exit code is 0 if everything could be measured, whether or not the targets are met,
and 1 if something failed or the run was interrupted.`

// benchEtcdFlags are flags that become Options.
type benchEtcdFlags struct {
	o                            etcdbench.Options
	against, servers, pids, only []string
}

func newBenchEtcd() *cobra.Command {
	var f benchEtcdFlags
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Measure plinth's etcd endpoint beside others",
		Long:  benchEtcdHelp,
		Args:  noArgs,
		Example: `  plinth bench etcd
  plinth bench etcd --against etcd=http://127.0.0.1:2379 --pid etcd=4711 --against kine=http://127.0.0.1:2380
  plinth bench etcd --dsn none --kubeconfig sqlite=on-plinth.conf --kubeconfig etcd=on-etcd.conf
  plinth bench etcd --only churn --churn 10m --against etcd=http://127.0.0.1:2379`,
	}
	cmd.RunE = benchRun(f.check, &f.o, runBenchEtcd)
	addInOrder(cmd, f.flags()...)
	withVariables(cmd)
	return cmd
}

func (b *benchEtcdFlags) flags() []Flag {
	return []Flag{
		dsnsFlag(&b.o.DSNs, "`database` to measure plinth on, written as for plinth etcd; repeat the flag for several; none: no plinth"),
		againstFlag(&b.against, "`NAME=URL` of an endpoint to measure beside plinth; repeat the flag for several"),
		kubeconfigFlagOf(repeated(&b.servers, nil), "`NAME=FILE` of a kube-apiserver on an endpoint, to measure its clients; repeat the flag for several"),
		pidFlag(&b.pids, "`NAME=PID` of a process whose memory, CPU and writes count as the endpoint's; repeat the flag for several"),
		certFlag(&b.o.TLS.Cert, "`file` of the client's certificate, for endpoints with https://"),
		keyFlag(&b.o.TLS.Key, "`file` of the certificate's key"),
		caFlag(&b.o.TLS.CA, "`file` of the authority of the endpoints' certificates"),
		churnFlag(&b.o.Churn, "how long 200 writers and 100 watchers work on 1,000 keys"),
		churnRateFlag(&b.o.ChurnRate, "most `writes` a second of all writers; 0: no limit"),
		{Name: "keys", Set: number(&b.o.Keys, 0), Help: "`number` of keys of 1 KiB while memory is measured; 0: 100,000, or 1,000 with --quick"},
		onlyFlag(&b.only, "`measurements` to make, separated by commas: ", etcdbench.Steps()),
		outFlag(&b.o.Dir, chartsHelp),
		quickFlag(&b.o.Quick, quickHelp),
	}
}

// check completes the options by the flags that have a form of their own.
func (b *benchEtcdFlags) check() (err error) {
	if b.o.DSNs, err = benchDSNs(b.o.DSNs, true); err != nil {
		return err
	}
	names, err := benchOthers(&b.o.Others, "against", b.against, hasScheme, "NAME=URL, such as etcd=http://127.0.0.1:2379")
	if err != nil {
		return err
	}
	if _, err := benchOthers(&b.o.Servers, "kubeconfig", b.servers, nil, "NAME=FILE, such as sqlite=kubeconfig"); err != nil {
		return err
	}
	if names, err = addDatabases(names, b.o.DSNs, "endpoints"); err != nil {
		return err
	}
	if len(names)+len(b.o.Servers) == 0 {
		return usagef("--dsn none leaves nothing to measure; write --against NAME=URL")
	}
	if b.o.PIDs, err = benchProcesses(b.pids, names); err != nil {
		return err
	}
	if b.o.Keys < 0 {
		return usagef("--keys: write 0 or more")
	}
	b.o.Only = b.only
	return checkComparison(&b.o.ComparisonOptions, etcdbench.Steps())
}

func hasScheme(url string) bool {
	scheme, rest, ok := strings.Cut(url, "://")
	return ok && rest != "" && slices.Contains([]string{"http", "https", "unix", "unixs"}, scheme)
}

func runBenchEtcd(ctx context.Context, o etcdbench.Options, stdout, stderr io.Writer) error {
	return runReported(&o.Options, stdout, stderr, announceComparison(&o.ComparisonOptions, o.Servers...), func() (*figures.Comparison, error) { return etcdbench.Run(ctx, o) }, "etcd", "--log-level", "warn")
}
