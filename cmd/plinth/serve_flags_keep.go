package main

import (
	"os"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/spf13/cobra"
)

// keepOptions are the flags about which old versions are kept.
type keepOptions struct {
	rules []string
	file  string
}

func addKeepFlags(cmd *cobra.Command, o *keepOptions) {
	f := cmd.Flags()
	f.StringArrayVar(&o.rules, "keep", nil, "which old versions of objects stay for reading the past, longer than --history: `rules` such as deployments.apps=90d for a time, configmaps=10 for a number of versions of each object, pods=7d/20 for both, *=7d for all other resources, secrets=0 for none; separate them by commas or repeat the flag; by default none stay")
	f.StringVar(&o.file, "keep-file", "", "`file` with rules as in --keep, one on each line; # begins a comment")
}

// parse returns what the flags say, nil if they say nothing.
func (o *keepOptions) parse(cmd *cobra.Command) (*changelog.Keep, error) {
	text := strings.Join(o.rules, "\n")
	flag := source(cmd.Flags().Lookup("keep"))
	if o.file != "" {
		file, err := os.ReadFile(o.file)
		if err != nil {
			return nil, usagef("%s: %v", source(cmd.Flags().Lookup("keep-file")), err)
		}
		if _, err := changelog.ParseRules(string(file)); err != nil {
			return nil, usagef("%s: %s: %v", source(cmd.Flags().Lookup("keep-file")), o.file, err)
		}
		text += "\n" + string(file)
	}
	rules, err := changelog.ParseRules(text)
	if err != nil {
		return nil, usagef("%s: %v", flag, err)
	}
	if len(rules) == 0 {
		return nil, nil
	}
	return changelog.NewKeep(rules...), nil
}
