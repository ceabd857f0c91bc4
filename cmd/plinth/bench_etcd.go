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

	"github.com/plinth-io/plinth/bench/etcdbench"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/logging"
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
			return runBenchEtcd(cmd.Context(), f.o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
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
func (b *benchEtcdFlags) check() error {
	for _, dsn := range b.o.DSNs {
		if dsn == "none" {
			continue
		}
		if err := dialects.Check(dsn, dialects.Options{}); err != nil {
			return usagef("--dsn: %v", err)
		}
	}
	switch {
	case len(b.o.DSNs) == 0:
		b.o.DSNs = benchDatabases()
	case slices.Contains(b.o.DSNs, "none"):
		b.o.DSNs = nil
	}
	names, err := b.others()
	if err == nil {
		err = b.apiservers()
	}
	if err != nil {
		return err
	}
	for _, dsn := range b.o.DSNs {
		name := dialects.Scheme(dsn)
		if slices.Contains(names, name) {
			return usagef("%q is the name of two endpoints; write another one in --against, or one --dsn for each kind of database", name)
		}
		names = append(names, name)
	}
	if len(names)+len(b.o.Servers) == 0 {
		return usagef("--dsn none leaves nothing to measure; write --against NAME=URL")
	}
	if b.o.PIDs, err = benchProcesses(b.pids, names); err != nil {
		return err
	}
	if b.o.Churn < time.Second {
		return usagef("--churn: write at least 1s")
	}
	if b.o.ChurnRate < 0 || b.o.Keys < 0 {
		return usagef("--churn-rate and --keys: write 0 or more")
	}
	for _, name := range b.only {
		if !slices.Contains(etcdbench.Steps(), name) {
			return usagef("--only: %q: write some of %s", name, strings.Join(etcdbench.Steps(), ", "))
		}
	}
	b.o.Only = b.only
	return nil
}

// others reads --against and returns the names.
func (b *benchEtcdFlags) others() (names []string, err error) {
	for _, against := range b.against {
		name, url, ok := strings.Cut(against, "=")
		if !ok || name == "" || !hasScheme(url) {
			return nil, usagef("--against: %q: write NAME=URL, such as etcd=http://127.0.0.1:2379", against)
		}
		if slices.Contains(names, name) {
			return nil, usagef("--against: the name %q comes twice", name)
		}
		names = append(names, name)
		b.o.Others = append(b.o.Others, etcdbench.Other{Name: name, URL: url})
	}
	return names, nil
}

// apiservers reads --kubeconfig.
func (b *benchEtcdFlags) apiservers() error {
	for _, given := range b.servers {
		name, file, ok := strings.Cut(given, "=")
		known := func(other etcdbench.Other) bool { return other.Name == name }
		switch {
		case !ok || name == "" || file == "":
			return usagef("--kubeconfig: %q: write NAME=FILE, such as sqlite=kubeconfig", given)
		case slices.ContainsFunc(b.o.Servers, known):
			return usagef("--kubeconfig: the name %q comes twice", name)
		}
		b.o.Servers = append(b.o.Servers, etcdbench.Other{Name: name, URL: file})
	}
	return nil
}

func hasScheme(url string) bool {
	scheme, rest, ok := strings.Cut(url, "://")
	return ok && rest != "" && slices.Contains([]string{"http", "https", "unix", "unixs"}, scheme)
}

func runBenchEtcd(ctx context.Context, o etcdbench.Options, stdout, stderr io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Command = []string{exe, "etcd", "--log-level", "warn"}
	o.Version = server.Release()
	if term.IsTerminal(int(os.Stderr.Fd())) {
		o.Progress = os.Stderr
	}
	fmt.Fprintln(stderr, announceBenchEtcd(&o))
	report, err := etcdbench.Run(ctx, o)
	if report == nil {
		return err
	}
	return errors.Join(err, printReport(stdout, report, report.Seconds, report.Files))
}

// announceBenchEtcd says what is going to be measured and where results go.
func announceBenchEtcd(o *etcdbench.Options) string {
	var names []string
	for _, dsn := range o.DSNs {
		names = append(names, "plinth on "+dialects.Scheme(dsn))
	}
	for _, other := range o.Others {
		names = append(names, other.Name)
	}
	for _, server := range o.Servers {
		names = append(names, "a kube-apiserver on "+server.Name)
	}
	return fmt.Sprintf("Measuring %s. Charts and figures will be in %s.", strings.Join(names, ", "), o.Dir)
}
