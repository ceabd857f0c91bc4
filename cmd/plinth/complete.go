package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// complete has a shell complete the flag's value.
func (f *Flag) complete(cmd *cobra.Command) {
	completion := f.Complete
	switch value, _ := pflag.UnquoteUsage(cmd.Flags().Lookup(f.Name)); {
	case completion != nil:
	case value == "file":
		completion = fileNames
	case value == "directory":
		completion = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	default:
		completion = values()
	}
	if err := cmd.RegisterFlagCompletionFunc(f.Name, completion); err != nil {
		panic(err) // a flag is twice in the table
	}
}

// fileNames completes names of files, which is what shells do without being told.
func fileNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// values completes these words, also in a list. Without any, it completes nothing.
func values(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndexByte(begun, ',')+1] // the values of a list that are complete
		out := make([]string, len(words))
		for i, word := range words {
			out[i] = before + word
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// refineCompletion makes cobra's own command completion say what is wrong with a shell that
// it does not know.
func refineCompletion(root *cobra.Command) {
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has none
	}
	cmd.Short = "Print a script that completes commands and flags in a shell"
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range cmd.Commands() {
		shell.Short = "Print the script for " + shell.Name()
	}
}
