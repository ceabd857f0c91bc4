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
