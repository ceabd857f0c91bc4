package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestKeepFlags: rules that are given take the place of those by default, and of their bound.
func TestKeepFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keep")
	if err := os.WriteFile(file, []byte("pods=2d # for a while\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	byDefault := "*=1d events=0 leases.coordination.k8s.io=0 secrets=0"
	for _, c := range []struct {
		name  string
		args  []string
		rules string
		size  int64
	}{
		{"nothing", nil, byDefault, sqlstore.BoundByShare},
		{"a size", []string{"--keep-size=1GiB"}, byDefault, 1 << 30},
		{"no size", []string{"--keep-size=0"}, byDefault, 0},
		{"rules", []string{"--keep=*=90d"}, "*=90d", 0},
		{"rules in a file", []string{"--keep-file=" + file}, "pods=2d", 0},
		{"rules and a size", []string{"--keep=*=90d", "--keep-size=64MiB"}, "*=90d", 64 << 20},
		{"none", []string{"--keep=none"}, "", 0},
		{"no rule", []string{"--keep="}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var config server.Config
			o := newServeOptions()
			flags := register(pflag.NewFlagSet("serve", pflag.ContinueOnError), o.databaseFlags())
			if err := flags.set.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			if err := o.keep.apply(&config); err != nil {
				t.Fatal(err)
			}
			var rules []string
			for _, r := range config.Keep.Rules() {
				rules = append(rules, r.String())
			}
			if got := strings.Join(rules, " "); got != c.rules || config.KeepSize != c.size || (config.Keep == nil) != (c.rules == "") {
				t.Errorf("%q and %d bytes, want %q and %d", got, config.KeepSize, c.rules, c.size)
			}
		})
	}
}
