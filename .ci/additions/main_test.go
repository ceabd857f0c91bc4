package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/.ci/patched"
)

// TestAdditions holds the patches to the present source, and to the rows of CONTRIBUTING.md: each row has a patch. make
// additions compiles them.
func TestAdditions(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := rows(string(text))
	if err != nil {
		t.Fatal("CONTRIBUTING.md, Where things go:", err)
	}
	all, err := patched.ReadAll(filepath.Join(root, ".ci", "additions"), keys, optional)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if _, err := p.Apply(root, t.TempDir()); err != nil {
			t.Errorf("%s: %v; write the addition anew for the source as it is now, and the row of CONTRIBUTING.md with it", p.Name, err)
		}
		if !slices.Contains(want, p.Says["row"]) {
			t.Errorf("%s: CONTRIBUTING.md has no row %q", p.Name, p.Says["row"])
		}
	}
	for _, row := range want {
		if !slices.ContainsFunc(all, func(p patched.Patch) bool { return p.Says["row"] == row }) {
			t.Errorf("the row %q of CONTRIBUTING.md has no patch in .ci/additions", row)
		}
	}
}

// row matches the first cell of a row.
var row = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)

// rows are the first cells of the table "Where things go".
func rows(contributing string) (names []string, err error) {
	_, text, ok := strings.Cut(contributing, "\n## Where things go\n")
	text, _, _ = strings.Cut(text, "\n## ")
	if !ok {
		return nil, fmt.Errorf("there is no chapter with this name")
	}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	if len(names) < 2 {
		return nil, fmt.Errorf("there is no table")
	}
	return names[1:], nil // without the head
}

func TestRows(t *testing.T) {
	const page = "# A\n\n| a | b |\n|---|---|\n| no | x |\n\n## Where things go\n\n| what | where |\n|---|---|\n| verb | a file |\n| kind, part | a line |\n\n## B\n\n| other | x |\n"
	if names, err := rows(page); err != nil || strings.Join(names, ";") != "verb;kind, part" {
		t.Errorf("read are %q, %v", names, err)
	}
	for _, bad := range []string{"", "## Where things go\n", "\n## Where things go\n\nno table\n"} {
		if _, err := rows(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// TestAdd has an addition that compiles, one that does not, and one whose test fails.
func TestAdd(t *testing.T) {
	const head = "diff --git a/new.go b/new.go\nnew file mode 100644\n--- /dev/null\n+++ b/new.go\n@@ -0,0 +1,3 @@\n+package sums\n+\n+"
	const test = "package sums\n\nimport \"testing\"\n\nfunc TestOld(t *testing.T) {\n\tif added != 3 {\n\t\tt.Error(added)\n\t}\n}\n"
	for _, c := range []struct{ name, line, err string }{
		{"compiles", "const added = 3", ""},
		{"does not compile", "const added", "go vet"},
		{"fails", "const added = 4", "go test"},
	} {
		root := t.TempDir()
		for name, text := range map[string]string{
			"go.mod": "module example.org/sums\n\ngo 1.26\n", "sum_test.go": test,
			"a.patch": "row: verb\npackages: .\nrun: ^TestOld$\n\n" + head + c.line + "\n",
		} {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		all, err := patched.ReadAll(root, keys, optional)
		if err != nil || len(all) != 1 {
			t.Fatalf("read are %v, %v", all, err)
		}
		out, err := add(root, &all[0])
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: the error is %v, and the output %s", c.name, err, out)
		}
	}
}
