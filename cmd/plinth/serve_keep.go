package main

import (
	"os"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// keepOptions say which old versions are kept.
type keepOptions struct {
	rules []string
	file  string
}

// parse returns what the flags say, nil if they say nothing.
func (o *keepOptions) parse() (*changelog.Retention, error) {
	text := strings.Join(o.rules, "\n")
	if o.file != "" {
		file, err := os.ReadFile(o.file)
		if err != nil {
			return nil, usagef("--keep-file: %v", err)
		}
		if _, err := changelog.ParseRules(string(file)); err != nil {
			return nil, usagef("--keep-file: %s: %v", o.file, err)
		}
		text += "\n" + string(file)
	}
	rules, err := changelog.ParseRules(text)
	if err != nil {
		return nil, usagef("--keep: %v", err)
	}
	if len(rules) == 0 {
		return nil, nil
	}
	return changelog.NewRetention(rules...), nil
}
