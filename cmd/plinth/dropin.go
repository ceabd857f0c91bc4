package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// newProgram returns what the program is: plinth, or what plinth is called as. plinth test-assets
// makes links with names of servers, and who wants kubectl plinth makes one for kubectl.
func newProgram() *cobra.Command {
	switch programName() {
	case pluginName, pluginCompleteName:
		return newPlugin()
	case apiServerName:
		return newAPIServer()
	case etcdName:
		return newEtcdDropIn()
	}
	return newRoot()
}

// programName is what the program was called as.
func programName() string { return filepath.Base(os.Args[0]) }

// apiServerName and etcdName are the names by which tests look for their servers.
const (
	apiServerName = "kube-apiserver"
	etcdName      = "etcd"
)

// ignoredFlag is a flag that has no effect but to be named.
type ignoredFlag struct {
	name  string
	bool  bool
	given *[]string
}

// ignoredFlags returns the flags of a list, where a question mark stands behind those that need no
// value. They add themselves to given.
func ignoredFlags(list string, given *[]string) (flags []*ignoredFlag) {
	for _, word := range strings.Fields(list) {
		name, isBool := strings.CutSuffix(word, "?")
		flags = append(flags, &ignoredFlag{name, isBool, given})
	}
	return flags
}

func (i *ignoredFlag) String() string   { return "" }
func (i *ignoredFlag) Type() string     { return "ignored" }
func (i *ignoredFlag) IsBoolFlag() bool { return i.bool }

func (i *ignoredFlag) Set(string) error {
	if name := "--" + i.name; !slices.Contains(*i.given, name) {
		*i.given = append(*i.given, name)
	}
	return nil
}

// warnOfIgnored names the flags that were given and have no effect, in one record.
func warnOfIgnored(logger *slog.Logger, flags []string) {
	if len(flags) > 0 {
		logger.Warn("these flags have no effect on plinth", "flags", strings.Join(flags, ","))
	}
}
