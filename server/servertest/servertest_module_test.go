package servertest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest/spent"
)

// An operator in a module of its own tests itself against plinth, also by the test that README.md shows.
func TestOtherModule(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := newModule(t, root)
	if err := os.WriteFile(filepath.Join(dir, "readme_test.go"), shownTest(t, root), 0o600); err != nil {
		t.Fatal(err)
	}
	// All that the operator needs is found from what plinth requires: what stands in replace and exclude lines, only the
	// main module has.
	goIn(t, dir, []string{"GOFLAGS=-mod=mod", "GOWORK=off"}, "list", "-deps", "-test", "./...")

	// In a workspace plinth is a main module too, whose packages are compiled already.
	work := "GOWORK=" + filepath.Join(dir, "go.work")
	goIn(t, dir, nil, "work", "init", dir, root)
	goIn(t, dir, []string{work}, "test", "-vet=off", "-count=1", "./...")
}

// newModule returns the directory of a copy of the operator in testdata, which takes this checkout
// for plinth. It gets this module's requirements, as `go mod tidy` would find them, so that
// nothing needs to be downloaded that this test's own build did not.
func newModule(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/operator")); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	goIn(t, dir, []string{"GOFLAGS=-mod=mod", "GOWORK=off"}, "mod", "edit", "-replace", "github.com/plinth-io/plinth="+root)
	return dir
}

// shownTest returns the only Go code in README.md.
func shownTest(t *testing.T, root string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?ms)^```go\n(package .*?)^```$").FindAllSubmatch(text, -1)
	if len(shown) != 1 || strings.Count(string(text), "```go\n") != 1 {
		t.Fatalf("README.md has %d whole Go files, and should have one and no other Go block", len(shown))
	}
	return shown[0][1]
}

func goIn(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	defer spent.On("running go "+args[0]+" in a module that requires plinth", time.Now())
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}
