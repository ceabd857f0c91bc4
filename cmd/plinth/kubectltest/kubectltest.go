// Package kubectltest finds or builds the kubectl that tests run. Of plinth it knows only the
// release that is served.
package kubectltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest/spent"
	"github.com/plinth-io/plinth/server/kind"
)

// oldestKubectl is the oldest minor version that tests run: the release's own, because documents show what it prints.
// Distributions package older ones.
var oldestKubectl, _ = strconv.Atoi(kind.Minor)

// Path returns the path of a kubectl: the installed one if it is recent, else one built from the
// release that plinth serves.
func Path() (string, error) { return find() }

var find = sync.OnceValues(func() (string, error) {
	path, err := exec.LookPath("kubectl")
	if err == nil {
		err = checkKubectl(path)
	}
	if err == nil {
		return path, nil
	}
	built, buildErr := buildKubectl()
	if buildErr != nil {
		return "", fmt.Errorf("no kubectl: install version 1.%d or later (%w; %w)", oldestKubectl, err, buildErr)
	}
	return built, nil
})

func checkKubectl(path string) error {
	out, err := exec.Command(path, "version", "--client", "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("%s version: %w", path, err)
	}
	var v struct{ ClientVersion struct{ Minor string } }
	if err := json.Unmarshal(out, &v); err != nil {
		return fmt.Errorf("%s version: %w", path, err)
	}
	if minor, _ := strconv.Atoi(strings.TrimRight(v.ClientVersion.Minor, "+")); minor < oldestKubectl {
		return fmt.Errorf("%s is of version 1.%s", path, v.ClientVersion.Minor)
	}
	return nil
}

const kubectlMain = `package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
`

// buildKubectl builds kubectl in a module of its own, under the user's cache, where later runs find it. The module
// requires what plinth does, k8s.io/kubectl of the release among it, so that Go's cache has most of kubectl's packages already.
func buildKubectl() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	version := "v0" + strings.TrimPrefix(kind.Release, "v"+kind.Major) // of the modules of that release
	dir := filepath.Join(cache, "plinth-test", "kubectl-"+version)
	path := filepath.Join(dir, "kubectl")
	if checkKubectl(path) == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(kubectlMain), 0o644); err != nil {
		return "", err
	}
	if err := requireAsPlinth(dir); err != nil {
		return "", err
	}
	defer spent.On("building kubectl", time.Now())
	const reported = "k8s.io/component-base/version"
	flags := "-X " + reported + ".gitVersion=" + kind.Release + " -X " + reported + ".gitMajor=" + kind.Major + " -X " + reported + ".gitMinor=" + kind.Minor
	cmd := exec.Command("go", "build", "-mod=mod", "-ldflags="+flags, "-o", path, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
}

// requireAsPlinth writes go.mod and go.sum of the module kubectl. Tests run in plinth's module.
func requireAsPlinth(dir string) error {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(out))
	mod, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(strings.TrimSuffix(file, "mod") + "sum")
	if err != nil {
		return err
	}
	mod = append([]byte("module kubectl"), mod[bytes.IndexByte(mod, '\n'):]...)
	return errors.Join(os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644), os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
}
