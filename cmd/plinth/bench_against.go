package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plinth-io/plinth/bench/apibench"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// benchAgainstFlags are those of plinth bench that become options of apibench.
type benchAgainstFlags struct {
	o                          apibench.Options
	against, pids, disks, only []string
}

// flags are those that mean nothing without --against.
func (b *benchAgainstFlags) flags() []Flag {
	return []Flag{
		pidFlag(&b.pids, "with --against, `NAME=PID` of a process whose memory, CPU and writes count as the server's; repeat the flag for several"),
		{Name: "disk", Set: repeated(&b.disks, nil), Help: "with --against, `NAME=DIRECTORY` of a server's database, whose growth is measured; repeat the flag for several"},
		certFlag(&b.o.TLS.Cert, "with --against, `file` of the client's certificate, for servers that are named by URL"),
		keyFlag(&b.o.TLS.Key, "with --against, `file` of the certificate's key"),
		caFlag(&b.o.TLS.CA, "with --against, `file` of the authority of the servers' certificates"),
		objectsFlag(number(&b.o.Objects, 0), "with --against, `number` of ConfigMaps of 1 KiB that are listed; 0: 10,000, or 200 with --quick"),
		churnFlag(&b.o.Churn, "with --against, how long 200 writers and 100 watchers work on 1,000 objects"),
		churnRateFlag(&b.o.ChurnRate, "with --against, most `writes` a second of all writers; 0: no limit"),
		nodesFlag(numbers(&b.o.Nodes, nil), "with --against, `numbers` of nodes to simulate, separated by commas; by default 100 and 1,000"),
		onlyFlag(&b.only, "with --against, `measurements` to make, separated by commas: ", apibench.Steps()),
	}
}

// check completes the options by those that both kinds of plinth bench have, and by the flags that have a form of their
// own.
func (b *benchAgainstFlags) check(both *measure.Options) (err error) {
	b.o.Options, b.o.Only = *both, b.only
	if b.o.DSNs, err = benchDSNs(both.DSNs, true); err != nil {
		return err
	}
	isURL := func(at string) bool { return strings.HasPrefix(at, "http://") || strings.HasPrefix(at, "https://") }
	names, err := benchOthers(&b.o.Others, "against", b.against, func(at string) bool { return isURL(at) || !strings.Contains(at, "://") },
		"NAME=URL or NAME=FILE, such as etcd=https://127.0.0.1:6443 or etcd=kubeconfig")
	if err != nil {
		return err
	}
	for _, other := range b.o.Others {
		if _, err := os.Stat(other.At); !isURL(other.At) && err != nil {
			return usagef("--against: %q: %v", other.Name+"="+other.At, err)
		}
	}
	if names, err = addDatabases(names, b.o.DSNs, "servers"); err != nil {
		return err
	}
	if b.o.PIDs, err = benchProcesses(b.pids, names); err != nil {
		return err
	}
	if err := b.directories(names); err != nil {
		return err
	}
	switch {
	case b.o.Objects != 0 && b.o.Objects < 100:
		return usagef("--objects: write 100 or more")
	case slices.ContainsFunc(b.o.Nodes, func(n int) bool { return n < 1 || n > 10_000 }):
		return usagef("--nodes: write numbers from 1 to 10000")
	}
	if err := checkComparison(&b.o.ComparisonOptions, apibench.Steps()); err != nil {
		return err
	}
	if makeComponents == nil && len(b.o.DSNs) > 0 && apibench.NeedsCluster(b.only) {
		return usagef("--only: " + withoutComponents + ", which deployments need; use the plinth of a release, or write --dsn none")
	}
	return nil
}

// directories reads --disk.
func (b *benchAgainstFlags) directories(names []string) error {
	b.o.Disks = map[string]string{}
	for _, given := range b.disks {
		name, dir, ok := strings.Cut(given, "=")
		switch info, err := os.Stat(dir); {
		case !ok || name == "":
			return usagef("--disk: %q: write NAME=DIRECTORY, such as etcd=/var/lib/etcd", given)
		case !slices.Contains(names, name):
			return usagef("--disk: nothing is called %q; there are %s", name, strings.Join(names, ", "))
		case err != nil:
			return usagef("--disk: %q: %v", given, err)
		case !info.IsDir():
			return usagef("--disk: %q is no directory", given)
		}
		b.o.Disks[name] = filepath.Clean(dir)
	}
	return nil
}

// runBenchAgainst measures plinth beside others.
func runBenchAgainst(ctx context.Context, o apibench.Options, stdout, stderr io.Writer) error {
	return runReported(&o.Options, stdout, stderr, announceComparison(&o.ComparisonOptions), func() (*figures.Comparison, error) { return apibench.Run(ctx, o) }, "serve")
}
