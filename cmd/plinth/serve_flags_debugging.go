package main

import (
	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/debugging"
)

// addDebuggingFlags adds the flags about profiles, under kube-apiserver's names, and those for tests.
func addDebuggingFlags(cmd *cobra.Command, o *debugging.Options, c *server.Config) {
	f := cmd.Flags()
	f.BoolVar(&c.ServeSnapshots, "serve-snapshots", false, "serve /plinth/snapshots, where those who may create snapshots in the API group plinth.io take snapshots of all objects and go back to them; for servers of tests")
	f.BoolVar(&o.Profiling, "profiling", false, "serve profiles at /debug/pprof, and /debug/flags/v, which changes --v of a running server, to those who are authorized for these paths")
	f.BoolVar(&o.Contention, "contention-profiling", false, "record where goroutines wait for each other, too, if profiling is on; this slows plinth down")
}
