package main

import (
	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/kind"
)

// releaseOptions say as which release of Kubernetes plinth behaves.
type releaseOptions struct{ emulated, compatible []string }

func (o *releaseOptions) addFlags(cmd *cobra.Command, c *server.Config) {
	f := cmd.Flags()
	f.StringSliceVar(&o.emulated, "emulated-version", nil, "`release` of Kubernetes to behave as, such as 1.36: its API versions, features and validation; down to three releases before plinth's own; by default plinth's own")
	f.StringSliceVar(&o.compatible, "min-compatibility-version", nil, "oldest `release` that may serve the same database beside plinth or after it: objects are stored in versions that it knows; by default the one before --emulated-version")
	f.BoolVar(&c.Forward.Configured, "runtime-config-emulation-forward-compatible", false, "serve what --runtime-config names also if it is newer than --emulated-version")
	f.BoolVar(&c.Forward.Successors, "emulation-forward-compatible", false, "serve beta and stable versions that are newer than --emulated-version of what it has in an older version")
}

// emulate is called before anything asks for a feature.
func (o *releaseOptions) emulate() error {
	if err := kind.Emulate(o.emulated, o.compatible); err != nil {
		return usagef("--emulated-version, --min-compatibility-version: %v; write a minor version such as %s.%s, or leave them out", err, kind.Major, kind.Minor)
	}
	return nil
}
