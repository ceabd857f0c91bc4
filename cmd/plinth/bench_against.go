package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plinth-io/plinth/bench"
	"github.com/plinth-io/plinth/bench/apibench"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/logging"
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

// check completes the options by the flags that have a form of their own. dsns are the values of --dsn.
func (b *benchAgainstFlags) check(dsns []string) error {
	names, err := b.others()
	if err != nil {
		return err
	}
	if b.o.DSNs, err = b.databases(dsns); err != nil {
		return err
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
	case b.o.Churn < time.Second:
		return usagef("--churn: write at least 1s")
	case b.o.ChurnRate < 0:
		return usagef("--churn-rate: write 0 or more")
	case b.o.Objects != 0 && b.o.Objects < 100:
		return usagef("--objects: write 100 or more")
	case slices.ContainsFunc(b.o.Nodes, func(n int) bool { return n < 1 || n > 10_000 }):
		return usagef("--nodes: write numbers from 1 to 10000")
	}
	b.o.Only = b.only
	return checkOnly(b.only, apibench.Steps())
}

func (b *benchAgainstFlags) databases(dsns []string) ([]string, error) {
	if slices.Contains(dsns, "none") {
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

// others reads --against and returns the names.
func (b *benchAgainstFlags) others() (names []string, err error) {
	for _, against := range b.against {
		name, at, ok := strings.Cut(against, "=")
		isURL := strings.HasPrefix(at, "http://") || strings.HasPrefix(at, "https://")
		if !ok || name == "" || at == "" || !isURL && strings.Contains(at, "://") {
			return nil, usagef("--against: %q: write NAME=URL or NAME=FILE, such as etcd=https://127.0.0.1:6443 or etcd=kubeconfig", against)
		}
		if slices.Contains(names, name) {
			return nil, usagef("--against: the name %q comes twice", name)
		}
		if _, err := os.Stat(at); !isURL && err != nil {
			return nil, usagef("--against: %q: %v", against, err)
		}
		names = append(names, name)
		b.o.Others = append(b.o.Others, apibench.Other{Name: name, At: at})
	}
	return names, nil
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

// runBenchAgainst measures plinth beside others. of has the flags that both kinds of plinth bench have.
func runBenchAgainst(ctx context.Context, of *bench.Options, o apibench.Options, stdout, stderr io.Writer) error {
	logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
	command, err := ownCommand("serve")
	if err != nil {
		return err
	}
	o.Command, o.Version, o.Progress = command, server.Release(), progressTerminal()
	o.Dir, o.Quick = of.Dir, of.Quick
	fmt.Fprintln(stderr, announceBenchAgainst(&o))
	report, err := apibench.Run(ctx, o)
	if report == nil {
		return err
	}
	return errors.Join(err, printReport(stdout, report, report.Seconds, report.Files))
}

// announceBenchAgainst says what is going to be measured and where results go.
func announceBenchAgainst(o *apibench.Options) string {
	var names []string
	for _, dsn := range o.DSNs {
		names = append(names, "plinth on "+dialects.Scheme(dsn))
	}
	for _, other := range o.Others {
		names = append(names, other.Name)
	}
	return fmt.Sprintf("Measuring %s. Charts and figures will be in %s.", strings.Join(names, ", "), o.Dir)
}
