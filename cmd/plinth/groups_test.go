package main

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestEveryFlagHasAGroup(t *testing.T) {
	serve := newServe()
	serve.InitDefaultHelpFlag()
	_, ungrouped := sections(serve)
	if len(ungrouped) > 0 {
		t.Errorf("--%s: add a line to flagGroups", strings.Join(ungrouped, ", --"))
	}
	for _, group := range flagGroups {
		for _, pattern := range group.flags {
			found := false
			serve.Flags().VisitAll(func(f *pflag.Flag) {
				match, _ := path.Match(pattern, f.Name)
				found = found || match
			})
			if !found {
				t.Errorf("group %s: no flag is called --%s", group.name, pattern)
			}
		}
	}
}

// TestServeHelp checks that help has the groups in order and each flag once, and fits a terminal.
func TestServeHelp(t *testing.T) {
	root, out := newRoot(), new(bytes.Buffer)
	root.SetOut(out)
	root.SetArgs([]string{"serve", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	at := 0
	for _, group := range flagGroups {
		i := strings.Index(text[at:], "\n\n"+group.name+":\n")
		if i < 0 {
			t.Fatalf("no group %s after %s", group.name, text[:at])
		}
		at += i
	}
	newServe().Flags().VisitAll(func(f *pflag.Flag) {
		if n := strings.Count(text, "--"+f.Name+" "); n < 1 && !f.Hidden {
			t.Errorf("--%s is not there", f.Name)
		}
	})
	for _, line := range strings.Split(text, "\n") {
		if len([]rune(line)) > 135 { // that the variable of a long flag needs, with its default
			t.Errorf("too long: %s", line)
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
