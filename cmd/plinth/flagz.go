package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/flagz"
	cliflag "k8s.io/component-base/cli/flag"
)

// classified are flags whose values may have passwords in them.
var classified = []string{"dsn"}

// shownFlags are a command's flags as /flagz shows them.
func shownFlags(cmd *cobra.Command) flagz.Reader {
	for _, name := range classified {
		_ = cmd.Flags().SetAnnotation(name, "classified", []string{"true"}) // which not all commands have
	}
	return flagz.NamedFlagSetsReader{FlagSets: cliflag.NamedFlagSets{FlagSets: map[string]*pflag.FlagSet{cmd.Name(): cmd.Flags()}}}
}
