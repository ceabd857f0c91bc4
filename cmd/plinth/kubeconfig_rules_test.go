package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
)

// TestKubeconfigRules has the commands that ask a plinth read the same kubeconfig.
func TestKubeconfigRules(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("PLINTH_DATA_DIR", "")
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, env string
		args      []string
		variable  string
		want      string // "" leaves it to the rules of kubectl
	}{
		{"the flag", "x", []string{"--kubeconfig", "a", "--data-dir", dir}, "", "a"},
		{"the flag of a directory", "x", []string{"--data-dir", dir}, "", file},
		{"a directory without one", "", []string{"--data-dir", home}, "", filepath.Join(home, "kubeconfig")},
		{"KUBECONFIG", "x", nil, dir, ""},
		{"the data directory", "", nil, dir, file},
		{"none", "", nil, home, ""},
	} {
		t.Setenv("KUBECONFIG", c.env)
		t.Setenv("PLINTH_DATA_DIR", c.variable)
		var status statusQuery
		var history historyFlags
		ofStatus, ofHistory := &cobra.Command{}, &cobra.Command{}
		addFlags(ofStatus, status.serverFlags()...)
		history.add(ofHistory, true)
		for _, cmd := range []*cobra.Command{ofStatus, ofHistory} {
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
		}
		status.inDataDir(ofStatus)
		if got := status.rules().ExplicitPath; got != c.want {
			t.Errorf("%s: status reads %q, want %q", c.name, got, c.want)
		}
		if got := history.rules(ofHistory).ExplicitPath; got != c.want {
			t.Errorf("%s: log reads %q, want %q", c.name, got, c.want)
		}
	}
}
