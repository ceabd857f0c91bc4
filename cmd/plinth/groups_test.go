package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestEveryFlagHasAGroup(t *testing.T) {
	for _, cmd := range []*cobra.Command{newServe(), newEtcd()} {
		if _, ungrouped := sections(cmd); len(ungrouped) > 0 {
			t.Errorf("%s: --%s: put it into a group", cmd.Name(), strings.Join(ungrouped, ", --"))
		}
	}
}

// TestServeHelp checks that help has the groups in order and each flag once.
func TestServeHelp(t *testing.T) {
	root, out := newRoot(), new(bytes.Buffer)
	root.SetOut(out)
	root.SetArgs([]string{"serve", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	at, group := 0, ""
	for _, f := range newServeOptions().flags() {
		if f.Group != group && !f.Hidden {
			i := strings.Index(text[at:], "\n\n"+f.Group+":\n")
			if i < 0 {
				t.Fatalf("no group %s after %s", f.Group, text[:at])
			}
			at, group = at+i, f.Group
		}
	}
	newServe().Flags().VisitAll(func(f *pflag.Flag) {
		if n := strings.Count(text, " --"+f.Name+" ") + strings.Count(text, " --"+f.Name+"\n"); !f.Hidden && n == 0 {
			t.Errorf("--%s is not there", f.Name)
		}
	})
}

// TestHelpLines prints the help of every command of every program. A line has 110 columns at most, so that
// it fits a terminal beside others.
func TestHelpLines(t *testing.T) {
	const most = 110
	for _, program := range []func() *cobra.Command{newRoot, newPlugin, newAPIServer, newEtcdDropIn} {
		eachCommand(program(), nil, func(args []string) {
			root, out := program(), new(bytes.Buffer)
			root.SetOut(out)
			root.SetArgs(append(args, "--help"))
			if err := root.Execute(); err != nil {
				t.Errorf("%s %q: %v", root.Name(), args, err)
			}
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > most {
					t.Errorf("%s %s --help has a line of %d: %s", root.Name(), strings.Join(args, " "), n, line)
				}
			}
			if out.Len() == 0 {
				t.Errorf("%s %q: no help", root.Name(), args)
			}
		})
	}
}

// eachCommand calls f with the arguments of cmd and of all commands below it.
func eachCommand(cmd *cobra.Command, args []string, f func(args []string)) {
	f(slices.Clone(args))
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			eachCommand(below, append(args, below.Name()), f)
		}
	}
}

// TestHelpBelowGroups checks that a command below one whose flags are in groups shows its own.
func TestHelpBelowGroups(t *testing.T) {
	root, out := newRoot(), new(bytes.Buffer)
	root.SetOut(out)
	root.SetArgs([]string{"etcd", "import", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\n      --from-kine database   ") {
		t.Error(out)
	}
}

// TestUsageStyle checks that usage texts begin without a capital, except for names, and end without
// a full stop.
func TestUsageStyle(t *testing.T) {
	names := []string{"API ", "DNS ", "CIDR ", "CSV ", "IP ", "URL "}
	newServe().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		text, _ := cutVariable(usage, f)
		named := false
		for _, name := range names {
			named = named || strings.HasPrefix(text, name)
		}
		if first := text[:1]; first != strings.ToLower(first) && !named || strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "...") {
			t.Errorf("--%s: %s", f.Name, text)
		}
	})
}
