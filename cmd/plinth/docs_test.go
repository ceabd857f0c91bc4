package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestCommandReference reads the file of which make release makes man pages.
func TestCommandReference(t *testing.T) {
	file := filepath.Join(t.TempDir(), "commands.json")
	if code := run([]string{"docs", file}, os.Stdout, os.Stderr); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	text, err := os.ReadFile(file)
	must(t, err)
	var root commandHelp
	must(t, json.Unmarshal(text, &root))
	serve := slices.IndexFunc(root.Commands, func(c commandHelp) bool { return c.Use == "serve" })
	if root.Use != "plinth" || serve < 0 {
		t.Fatalf("the file has no plinth serve: %.200s", text)
	}
	dsn := slices.IndexFunc(root.Commands[serve].Flags, func(f flagHelp) bool { return f.Name == "dsn" })
	if dsn < 0 || !strings.Contains(root.Commands[serve].Flags[dsn].Usage, "PLINTH_DSN") {
		t.Errorf("plinth serve is without --dsn and its variable: %+v", root.Commands[serve].Flags)
	}
	for _, c := range root.Commands {
		if slices.Contains([]string{"docs FILE", "help [command]"}, c.Use) {
			t.Errorf("the file has %s", c.Use)
		}
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
