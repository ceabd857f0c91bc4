package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// upstreamFlags are the flags of kube-apiserver, as its own code has them.
func upstreamFlags() *pflag.FlagSet {
	var sets cliflag.NamedFlagSets = options.NewServerRunOptions().Flags()
	// The package verflag, whose flag this is, would give it to all of plinth's commands.
	sets.FlagSet("global").String("version", "false", "")
	sets.FlagSet("global").Lookup("version").NoOptDefVal = "true"
	globalflag.AddGlobalFlags(sets.FlagSet("global"), apiServerName, logs.SkipLoggingConfigurationFlags())
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	return all
}

// otherDefaults are flags whose default is another than upstream's, and why.
var otherDefaults = map[string]string{
	"http2-max-streams-per-connection": "upstream's 0 stands for a default of Go",
	"service-account-issuer":           "upstream refuses to start without one",
	"service-cluster-ip-range":         "upstream's code has the same default, and its flag none",
}

// TestAPIServerFlags compares the drop-in's flags with kube-apiserver's: their names, whether they
// need a value, and their defaults.
func TestAPIServerFlags(t *testing.T) {
	ours, theirs := newAPIServer().Flags(), upstreamFlags()
	theirs.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		have := ours.Lookup(f.Name)
		if have == nil {
			t.Errorf("there is no --%s", f.Name)
			return
		}
		if have.NoOptDefVal != f.NoOptDefVal {
			t.Errorf("--%s without a value is %q, upstream %q", f.Name, have.NoOptDefVal, f.NoOptDefVal)
		}
		_, ignored := have.Value.(*ignoredFlag)
		_, other := otherDefaults[f.Name]
		if !ignored && !other && plainDefault(have) != plainDefault(f) {
			t.Errorf("the default of --%s is %q, upstream %q", f.Name, have.DefValue, f.DefValue)
		}
	})
	ours.VisitAll(func(f *pflag.Flag) {
		if theirs.Lookup(f.Name) == nil && !strings.HasPrefix(f.Name, "log-json-") { // of a package that the program adds
			t.Errorf("upstream has no --%s", f.Name)
		}
	})
}

// plainDefault writes the defaults of different types of flags alike.
func plainDefault(f *pflag.Flag) string {
	text := strings.Trim(f.DefValue, "[]")
	if slices.Contains([]string{"<nil>", "false", "0"}, text) {
		return ""
	}
	return text
}

// Every flag that has no effect is taken in both forms, and named once.
func TestAPIServerIgnoredFlags(t *testing.T) {
	for _, name := range strings.Fields(apiServerIgnored) {
		name, noValue := strings.CutSuffix(name, "?")
		args := []string{"--" + name + "=false", "--" + name, "x"}
		if noValue {
			args = args[:2]
		}
		o := &apiServerOptions{serveOptions: newServeOptions()}
		cmd := newAPIServerFor(o)
		if err := cmd.ParseFlags(append(args, "--secure-port", "1")); err != nil || o.securePort != 1 || !slices.Equal(o.ignored, []string{"--" + name}) {
			t.Errorf("%v: %v, port %d, ignored %v", args, err, o.securePort, o.ignored)
		}
	}
}
