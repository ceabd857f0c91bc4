package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFormula has Ruby parse the formula, and compares its checksums with the archives.
func TestFormula(t *testing.T) {
	r := made(t)
	file := filepath.Join(r.dist, "plinth.rb")
	if out := said(t, needs(t, "ruby", "ruby"), "-wc", file); out != "Syntax OK\n" {
		t.Errorf("ruby says %s", out)
	}
	text, err := os.ReadFile(file)
	must(t, err)
	for _, p := range platforms {
		name := r.archiveName(p) + ".tar.gz"
		sum, err := checksum(filepath.Join(r.dist, name))
		must(t, err)
		want := "/releases/download/" + r.version + "/" + name + "\"\n      sha256 \"" + sum + "\"\n"
		if !strings.Contains(string(text), want) {
			t.Errorf("the formula is without %s", want)
		}
	}
}
