package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPatchesApply holds the patches to the present source.
func TestPatchesApply(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(filepath.Join(root, ".ci", "mutants"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Errorf("there are %d patches", len(all))
	}
	for _, m := range all {
		if _, err := m.Apply(root, t.TempDir()); err != nil {
			t.Errorf("%s: %v; write the fault anew for the source as it is now", m.Name, err)
		}
	}
}

// TestPlant has a fault that is noticed, one that is not, one that cannot be compiled, and tests that fail without one.
func TestPlant(t *testing.T) {
	for _, c := range []struct {
		name, source, change, run string
		noticed                   bool
		err                       string
	}{
		{"caught", "+ b", "- b", "^TestSum$", true, ""},
		{"survives", "+ b", "- b", "^TestNothing$", false, ""},
		{"not compiled", "+ b", "+ c", "^TestSum$", false, "it cannot be compiled"},
		{"fails already", "* b", "- b", "^TestSum$", false, "the tests fail without the fault"},
		{"no test", "+ b", "- b", "^TestOther$", false, "no test matches"},
	} {
		root := t.TempDir()
		write(t, root, "go.mod", "module example.org/sums\n\ngo 1.26\n")
		write(t, root, "sum.go", "package sums\n\nfunc sum(a, b int) int {\n\treturn a "+c.source+"\n}\n")
		write(t, root, "sum_test.go", "package sums\n\nimport \"testing\"\n\nfunc TestNothing(*testing.T) {}\nfunc TestSum(t *testing.T) {\n\tif sum(1, 2) != 3 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n")
		patch := "diff --git a/sum.go b/sum.go\n--- a/sum.go\n+++ b/sum.go\n@@ -1,5 +1,5 @@\n package sums\n \n func sum(a, b int) int {\n-\treturn a " + c.source + "\n+\treturn a " + c.change + "\n }\n"
		write(t, root, "a.patch", "fault: it subtracts\npackages: .\nrun: "+c.run+"\n\n"+patch)
		all, err := readAll(root, nil)
		if err != nil || len(all) != 1 {
			t.Fatalf("read are %v, %v", all, err)
		}
		m := all[0]
		noticed, out, err := m.plant(root)
		if noticed != c.noticed || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: noticed is %v, the error %v, and the output %s", c.name, noticed, err, out)
		}
	}
}

func write(t *testing.T, dir, name, content string) (file string) {
	t.Helper()
	file = filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
