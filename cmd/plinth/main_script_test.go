package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
	"github.com/plinth-io/plinth/dialects/logtest"
)

// TestScripts plays each script of testdata/script on each dialect, against a plinth and
// a database of its own. Besides the commands of testscript they have
//
//	plinth-start [FLAG]...           serve on a free port; KUBECONFIG points at it
//	plinth-stop                      SIGTERM; must exit with 0
//	kubectl ARG...                   as exec kubectl
//	http [OPTION]... METHOD PATH [FILE]
//	                                 one request; stdout is status, some headers, body
//	eventually REGEXP COMMAND ARG... runs kubectl or http until it works and matches
//	capture NAME REGEXP              sets a variable from the first group in stdout
//	configmap FILE NAME BYTES        writes a ConfigMap of about that size
//	expect-exit CODE PROGRAM ARG...  as exec, but the exit code must be that one
//	kubelet-start                    run a kubelet, on $KUBELET_PORT
//	port-forward POD PORT PATH       one request through kubectl port-forward
//
// the conditions sqlite, postgres and mariadb, and $WORKLOADS, a large definition.
func TestScripts(t *testing.T) {
	t.Parallel()
	for _, d := range logtest.Dialects {
		t.Run(d.Name, func(t *testing.T) { runScripts(t, scriptsFor(t, d), d, withWorkloads) })
	}
}

// scriptsFor returns a directory of the scripts to play on a dialect: of three that follow each other one on each
// dialect, because kubectl keeps the processors busy for minutes. The verbs themselves are tested on each dialect
// in server/rest. Scripts that have conditions are about dialects, and are played on all.
// PLINTH_TEST_EVERYWHERE plays all on each.
func scriptsFor(t *testing.T, d logtest.Dialect) string {
	t.Helper()
	all, err := filepath.Abs(filepath.Join("testdata", "script"))
	must(t, err)
	if logtest.Everywhere() {
		return all
	}
	files, err := filepath.Glob(filepath.Join(all, "*.txt*"))
	must(t, err)
	here := slices.IndexFunc(logtest.Dialects, func(other logtest.Dialect) bool { return other.Name == d.Name })
	dir := t.TempDir()
	for i, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		if i%len(logtest.Dialects) == here || aboutDialects.Match(text) {
			must(t, os.Symlink(file, filepath.Join(dir, filepath.Base(file))))
		}
	}
	return dir
}

// aboutDialects matches a condition of a script.
var aboutDialects = regexp.MustCompile(`(?m)^\[!?(sqlite|postgres|mariadb)\]`)

func withWorkloads(env *testscript.Env) {
	file, err := filepath.Abs("../../server/kind/custom/crdtest/testdata/workloads.yaml")
	if err != nil {
		env.T().Fatal(err)
	}
	env.Setenv("WORKLOADS", file)
}

// TestCommandScripts plays the scripts about the command line, which open databases of
// their own: besides DSN, with SQLite, there are POSTGRES, MARIADB and EMPTY.
func TestCommandScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata/command", logtest.Dialects[0], func(env *testscript.Env) {
		env.Setenv("POSTGRES", logtest.Postgres(env.T().(testing.TB)))
		env.Setenv("MARIADB", logtest.MariaDB(env.T().(testing.TB)))
		env.Setenv("EMPTY", logtest.Postgres(env.T().(testing.TB)))
	})
}

func runScripts(t *testing.T, dir string, d logtest.Dialect, more func(*testscript.Env)) {
	kubectlPath, err := kubectltest.Path()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			if more != nil {
				more(env)
			}
			return setUp(env, d, kubectlPath)
		},
		Condition: func(name string) (bool, error) { return conditionOf(name, d) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"plinth-start": plinthStart,
			"plinth-stop":  plinthStop,
			"kubectl":      runKubectl,
			"http":         runHTTP,
			"eventually":   eventually,
			"capture":      capture,
			"configmap":    writeConfigMap,
			"expect-exit":  expectExit,

			"kubelet-start": kubeletStart,
			"port-forward":  portForward,
		},
	})
}

// script is what the commands of one script share.
type script struct {
	t      testing.TB
	server *process
}

type scriptKey struct{}

func of(ts *testscript.TestScript) *script { return ts.Value(scriptKey{}).(*script) }

func setUp(env *testscript.Env, d logtest.Dialect, kubectlPath string) error {
	t := env.T().(testing.TB)
	s := &script{t: t}
	env.Values[scriptKey{}] = s
	env.Setenv("DSN", d.Fresh(t))
	if d.Name == "sqlite" {
		env.Setenv("DSN", "sqlite://"+filepath.Join(env.WorkDir, "plinth.db"))
	}
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "data", "kubeconfig"))
	bin := filepath.Join(env.WorkDir, "bin")
	if err := errors.Join(linkPlinth(bin), wrapKubectl(bin, kubectlPath)); err != nil {
		return err
	}
	env.Setenv("PATH", strings.Join([]string{bin, os.Getenv("PATH")}, string(filepath.ListSeparator)))
	env.Defer(func() {
		if s.server == nil {
			return
		}
		if s.server.running() {
			s.server.kill()
		}
		s.server.report(t)
	})
	return nil
}

// linkPlinth makes the program plinth the command of that name of a script.
func linkPlinth(dir string) error {
	program, err := built()
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Symlink(program, filepath.Join(dir, "plinth"))
}

// wrapKubectl makes a kubectl in dir that waits longer for answers than its usual 32 s for
// discovery: a server under the race detector makes its first documents slowly on a busy machine. A
// kubectl lives for a moment, and scripts start hundreds: without collecting garbage, and on one processor, each needs a sixth less.
func wrapKubectl(dir, path string) error {
	script := fmt.Sprintf("#!/bin/sh\nGOGC=off GOMAXPROCS=1 exec %q --request-timeout=10m \"$@\"\n", path)
	return os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o755)
}

func conditionOf(name string, d logtest.Dialect) (bool, error) {
	for _, other := range logtest.Dialects {
		if name == other.Name {
			return name == d.Name, nil
		}
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

func plinthStart(ts *testscript.TestScript, neg bool, flags []string) {
	s := of(ts)
	p, err := launchBuilt(filepath.Join(ts.Getenv("WORK"), "data"), ts.Getenv("DSN"), flags...)
	s.server = p
	if neg != (err != nil) {
		ts.Fatalf("plinth-start: %v", err)
	}
	if err == nil {
		ts.Setenv("URL", p.url)
	}
}

func plinthStop(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(of(ts).server.stop()) }

func runKubectl(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("kubectl", args...)
	if neg != (err != nil) {
		ts.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
}

// patience bounds what should happen soon, on a machine that may be busy.
const patience = 2 * time.Minute

func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: eventually REGEXP COMMAND ARG...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	out, end := "", time.Now().Add(patience)
	for {
		out, err = attempt(ts, args[1:])
		if err == nil && want.MatchString(out) {
			_, err = ts.Stdout().Write([]byte(out))
			ts.Check(err)
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("never came to match: %v\n%s", err, out)
		}
		time.Sleep(300 * time.Millisecond) // kubectl takes 100 ms of a processor to start
	}
}

func attempt(ts *testscript.TestScript, args []string) (string, error) {
	if args[0] == "http" {
		return doHTTP(ts, args[1:])
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"HOME=" + ts.Getenv("HOME"), "KUBECONFIG=" + ts.Getenv("KUBECONFIG"), "PATH=" + ts.Getenv("PATH")}
	cmd.Dir = ts.MkAbs(".")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return string(out), err
}

func capture(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: capture NAME REGEXP")
	}
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("no match")
	}
	ts.Setenv(args[0], found[1])
}

func writeConfigMap(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: configmap FILE NAME BYTES")
	}
	size, err := strconv.Atoi(args[2])
	ts.Check(err)
	object := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q},"data":{"a":%q}}`, args[1], strings.Repeat("x", size))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(object), 0o600))
}

func expectExit(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("timeout", append([]string{"60"}, args[1:]...)...) // a server may start instead
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}
