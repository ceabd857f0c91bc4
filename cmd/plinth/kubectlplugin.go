package main

import (
	"github.com/spf13/cobra"
)

// The names under which kubectl runs plinth: for kubectl plinth, and to complete its arguments.
const (
	pluginName         = "kubectl-plinth"
	pluginCompleteName = "kubectl_complete-plinth"
)

// newPlugin returns the commands of kubectl plinth: those that ask a server as kubectl does.
func newPlugin() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-plinth",
		Short:         "Read the past of objects in a plinth, and bring it back",
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl plinth"},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newHistoryCommands()...)
	root.AddCommand(newVersion())
	root.SetHelpCommand(newHelp())
	foldFlags(root)
	root.CompletionOptions.DisableDefaultCmd = true // kubectl's completion asks kubectl_complete-plinth
	return root
}

// programArgs are the arguments of the program. kubectl asks for completions under a name of its own.
func programArgs(name string, args []string) []string {
	if name == pluginCompleteName {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}
