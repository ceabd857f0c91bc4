package main

import (
	"os"
	"strings"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// keepByDefault are the rules of a server that was given none. Secrets are not kept because their old versions
// are as secret as the current one; Events and Leases because they are written all the time, and nobody undoes that.
const keepByDefault = "*=24h,secrets=0,events=0,leases.coordination.k8s.io=0"

// keepNothing stands for no rules.
const keepNothing = "none"

// keepOptions say which old versions are kept.
type keepOptions struct {
	rules []string
	file  string
	size  keepSize
}

// apply sets what the flags say in c. Only the rules by default bring a bound of their own: whoever writes rules
// means them.
func (o *keepOptions) apply(c *server.Config) (err error) {
	c.KeepSize = int64(o.size.memorySize)
	if len(o.rules) > 0 || o.file != "" {
		c.Keep, err = o.parse()
		return err
	}
	rules, err := changelog.ParseRules(keepByDefault)
	if err != nil {
		return err
	}
	if c.Keep = changelog.NewRetention(rules...); !o.size.given {
		c.KeepSize = sqlstore.BoundByShare
	}
	return nil
}

// parse returns what the rules say, nil if they say nothing.
func (o *keepOptions) parse() (*changelog.Retention, error) {
	text := strings.Join(o.rules, "\n")
	if o.file == "" && strings.TrimSpace(text) == keepNothing {
		return nil, nil
	}
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

// keepSize is a memorySize of which one knows whether it was given.
type keepSize struct {
	memorySize
	given bool
}

// String implements pflag.Value.
func (k *keepSize) String() string {
	if k.given && k.memorySize == 0 {
		return "0"
	}
	return k.memorySize.String()
}

// Set implements pflag.Value.
func (k *keepSize) Set(text string) error {
	err := k.memorySize.Set(text)
	k.given = err == nil
	return err
}
