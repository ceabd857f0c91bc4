package servertest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The test that README.md shows compiles and passes in a module of its own, as it stands there.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?ms)^```go\n(package .*?)^```$").FindAllSubmatch(text, -1)
	if len(shown) != 1 || strings.Count(string(text), "```go\n") != 1 {
		t.Fatalf("README.md has %d whole Go files, and should have one and no other Go block", len(shown))
	}
	dir := newModule(t)
	for _, name := range []string{"operator.go", "operator_test.go"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "readme_test.go"), shown[0][1], 0o600); err != nil {
		t.Fatal(err)
	}
	goIn(t, dir, "test", "-count=1", "-v", "./...")
}
