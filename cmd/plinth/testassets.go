package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server"
)

const testAssetsHelp = `Make a directory with the programs that tests of operators start: kube-apiserver and etcd,
which are plinth, and kubectl if there is one on the PATH. Tests with envtest find them
there if the variable KUBEBUILDER_ASSETS names the directory.

The programs are links to this one. When it is moved, or replaced by another version under
another name, run the command again.`

func newTestAssets() *cobra.Command {
	var copies bool
	cmd := &cobra.Command{
		Use:   "test-assets DIR",
		Short: "Make the programs that tests with envtest look for",
		Long:  testAssetsHelp,
		Example: `  plinth test-assets bin/k8s
  KUBEBUILDER_ASSETS=$PWD/bin/k8s go test ./...`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("write the directory to make, such as plinth test-assets bin/k8s")
			}
			return makeTestAssets(args[0], copies, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, Flag{Name: "copy", Set: boolean(&copies, false), Help: "copy the programs in place of linking them, so that the directory can be moved"})
	return cmd
}

func makeTestAssets(dir string, copies bool, stdout io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	copies = copies || isTemporary(self)
	what := "plinth " + server.Release()
	for _, name := range []string{apiServerName, etcdName} {
		if err := (asset{self, what, isPlinth}).make(filepath.Join(dir, name), copies, stdout); err != nil {
			return err
		}
	}
	if err := makeKubectl(filepath.Join(dir, "kubectl"), copies, stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "export KUBEBUILDER_ASSETS=%s\n", shellQuote(dir))
	return err
}

// isTemporary tells whether a program is one of go run's, which the Go command deletes: at its end,
// or with its cache.
func isTemporary(program string) bool {
	dir := filepath.Dir(program)
	return strings.Contains(dir, "go-build") && (filepath.Base(dir) == "exe" || strings.HasSuffix(dir, "-d"))
}

// makeKubectl makes the kubectl of the PATH an asset. One that somebody has put there stays.
func makeKubectl(path string, copies bool, stdout io.Writer) error {
	found, err := exec.LookPath("kubectl")
	if err == nil {
		found, err = filepath.Abs(found)
	}
	info, statErr := os.Lstat(path)
	switch {
	case statErr == nil && info.Mode().IsRegular(), err == nil && found == path:
		_, err = fmt.Fprintf(stdout, "%s stays\n", path)
		return err
	case err != nil:
		_, err = fmt.Fprintln(stdout, "there is no kubectl on the PATH, for tests that run it")
		return err
	}
	return asset{found, found, func(string) bool { return false }}.make(path, copies, stdout)
}

// asset is a program of the directory.
type asset struct {
	program string                 // path
	what    string                 // that it is, for people
	ours    func(path string) bool // tells whether a file is an earlier copy
}

// make links or copies the program. It replaces links and earlier copies, and nothing else.
func (a asset) make(path string, copies bool, stdout io.Writer) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSymlink && !(info.Mode().IsRegular() && a.ours(path)):
		return usagef("%s is another program; remove it, or write another directory", path)
	}
	how, place := "a link to", os.Symlink
	if copies {
		how, place = "a copy of", copyProgram
	}
	temporary := path + ".new"
	_ = os.Remove(temporary) // of a run that was ended
	if err := place(a.program, temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is %s %s\n", path, how, a.what)
	return err
}

// isPlinth tells whether a file is a build of this module.
func isPlinth(path string) bool {
	info, err := buildinfo.ReadFile(path)
	self, ok := debug.ReadBuildInfo()
	return err == nil && ok && info.Main.Path == self.Main.Path
}

func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}
