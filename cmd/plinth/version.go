package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server"
)

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of plinth and of the Kubernetes API that it serves",
		Args:  noArgs,
		Example: `  plinth version
  plinth version -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			return printBuild(cmd.OutOrStdout(), server.BuildInfo(), output)
		},
	}
	addFlags(cmd, outputFlag(&output, outputHelp, "json", "yaml"))
	return cmd
}

func printBuild(w io.Writer, b server.Build, output string) error {
	if output != "" {
		return printAs(w, output, b)
	}
	commit := "commit " + b.Commit
	if b.Date != server.Unknown {
		commit += " of " + b.Date
	}
	if b.Tree == "dirty" {
		commit += " with local changes"
	}
	_, err := fmt.Fprintf(w, "plinth %s (Kubernetes %s, %s, %s, %s)\n", b.Version, b.Kubernetes, b.Go, b.Platform, commit)
	return err
}
