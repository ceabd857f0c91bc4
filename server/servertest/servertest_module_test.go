package servertest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest/spent"
)

// An operator in a module of its own tests itself against plinth.
func TestOtherModule(t *testing.T) {
	goIn(t, newModule(t), "test", "-count=1", "./...")
}

// newModule returns the directory of a copy of the operator in testdata, which takes this checkout
// for plinth. It gets this module's requirements, as `go mod tidy` would find them, so that
// nothing needs to be downloaded that this test's own build did not.
func newModule(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
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
	goIn(t, dir, "mod", "edit", "-replace", "github.com/plinth-io/plinth="+root)
	return dir
}

func goIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	defer spent.On("running go "+args[0]+" in a module that requires plinth", time.Now())
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}
