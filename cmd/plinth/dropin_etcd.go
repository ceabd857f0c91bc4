package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plinth-io/plinth/cmd/plinth/dropin"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/etcd"
)

const etcdDropInHelp = `plinth in the place of etcd, for tests (plinth test-assets).

It keeps all keys in a SQLite database in its data directory, and one more for each kube-apiserver
that is plinth, too. Other flags of etcd have no effect. etcd's variables, such as ETCD_DATA_DIR,
set flags that the command line lacks.

Flags:
`

// etcdDropIn is plinth etcd with the defaults of etcd.
type etcdDropIn struct {
	*etcdOptions
	own     *pflag.FlagSet // those of plinth etcd that etcd has
	version bool
}

func newEtcdDropInOptions() *etcdDropIn {
	o := &etcdDropIn{etcdOptions: newEtcdOptions(), own: pflag.NewFlagSet(etcdName, pflag.ContinueOnError)}
	all := o.etcdOptions.flags()
	register(pflag.NewFlagSet("", pflag.ContinueOnError), all) // for the defaults of those that etcd lacks
	o.table = register(o.own, append(inDropIn(all), versionFlag(boolean(&o.version, false))))
	o.addOthers(o.own)
	o.plaintext = true // tests listen on all addresses
	return o
}

// flags returns etcd's flags. They are those of Go's package: -name and --name are the same.
func (o *etcdDropIn) flags() *flag.FlagSet {
	f := flag.NewFlagSet(etcdName, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.own.VisitAll(func(flag *pflag.Flag) {
		f.Var(goFlag{flag}, flag.Name, flag.Usage)
	})
	for _, ignored := range ignoredFlags("log-format v?", &o.ignored) {
		f.Var(ignored, ignored.name, "")
	}
	return f
}

// goFlag is a flag of pflag for Go's package.
type goFlag struct{ *pflag.Flag }

// String implements flag.Value.
func (g goFlag) String() string {
	if g.Flag == nil {
		return ""
	}
	return g.Value.String()
}

// Set implements flag.Value.
func (g goFlag) Set(text string) error {
	err := g.Value.Set(text)
	g.Changed = g.Changed || err == nil // so that no variable sets it
	return err
}

// IsBoolFlag says whether the flag needs no value.
func (g goFlag) IsBoolFlag() bool { return g.NoOptDefVal != "" }

// newEtcdDropIn is the program that test-assets calls etcd.
func newEtcdDropIn() *cobra.Command {
	return &cobra.Command{
		Use:                etcdName,
		DisableFlagParsing: true, // cobra's flags have no names after one dash
		SilenceErrors:      true,
		SilenceUsage:       true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := newEtcdDropInOptions()
			f := o.flags()
			switch err := f.Parse(args); {
			case errors.Is(err, flag.ErrHelp):
				return printEtcdDropInHelp(cmd.OutOrStdout(), f)
			case err != nil:
				return usagef("%v; see etcd --help", err)
			case f.NArg() > 0:
				return usagef("unexpected %q; see etcd --help", f.Arg(0))
			case o.version:
				return printEtcdVersion(cmd.OutOrStdout(), server.BuildInfo())
			}
			if err := applyEtcdEnv(o.own); err != nil {
				return err
			}
			cmd.Flags().AddFlagSet(o.own)
			return o.table.nameFlags(&o.tls.serving, o.serve(cmd))
		},
	}
}

// printEtcdVersion prints what etcd does, and what is in its place.
func printEtcdVersion(w io.Writer, b server.Build) error {
	_, err := fmt.Fprintf(w, "etcd Version: %s\nGit SHA: %.7s\nGo Version: %s\nGo OS/Arch: %s\nplinth Version: %s\n", etcd.Version, b.Commit, b.Go, b.Platform, b.Version)
	return err
}

// printEtcdDropInHelp lists the flags that have an effect. Programs look here for --unsafe-no-fsync.
func printEtcdDropInHelp(w io.Writer, f *flag.FlagSet) error {
	var heads, usages []string
	f.VisitAll(func(f *flag.Flag) {
		if g, ok := f.Value.(goFlag); ok && !g.Hidden {
			_, usage := flag.UnquoteUsage(f)
			heads, usages = append(heads, "  --"+f.Name), append(usages, usage)
		}
	})
	_, err := io.WriteString(w, etcdDropInHelp+usageTable(heads, usages, columns(w)))
	return err
}

// serve answers until ctx ends.
func (o *etcdDropIn) serve(cmd *cobra.Command) error {
	if o.dataDir == "" {
		o.dataDir = o.server.Name + ".etcd"
	}
	if err := o.openLog(cmd); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	o.warn()
	warnOfEtcdVariables(o.own, os.Environ(), "etcd --help", o.logger)
	dir, err := filepath.Abs(o.dataDir)
	if err != nil {
		return err
	}
	databases := func(pages *http.ServeMux) { dropin.Databases{Directory: dir, Unsafe: o.unsafe}.Add(pages) }
	return o.run(cmd.Context(), io.Discard, databases, func() {})
}
