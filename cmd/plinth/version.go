package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of plinth and of the Kubernetes API that it serves",
		Args:  noArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			info := server.Version()
			fmt.Fprintf(cmd.OutOrStdout(), "plinth %s (Kubernetes %s, %s, %s)\n",
				server.Release(), server.KubernetesVersion, info.GoVersion, info.Platform)
		},
	}
}
