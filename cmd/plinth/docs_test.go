package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagReference(t *testing.T) {
	have, err := os.ReadFile("../../docs/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(flagReference(newRoot()))); diff != "" {
		t.Errorf("docs/flags.md is not what the flags say; run: go generate ./cmd/plinth\n%s", diff)
	}
}

// TestDefaultsStay: a command that sets a flag does not change what another command of the process says of it.
func TestDefaultsStay(t *testing.T) {
	const name = "default-not-ready-toleration-seconds"
	keepUpstreamFlags(t)
	must(t, newServe().Flags().Set(name, "7"))
	if said := newServe().Flags().Lookup(name).DefValue; said != "300" {
		t.Errorf("the default is %s", said)
	}
}
