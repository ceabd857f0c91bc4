package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest/spent"
)

// process is a running plinth serve.
type process struct {
	dir    string // --data-dir
	url    string // https://127.0.0.1:PORT
	log    string // file that has its stderr, appended by restarts
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

// launch starts plinth serve on a free port and returns when it serves. flags come after
// those of the test and override them.
func launch(dir, dsn string, flags ...string) (*process, error) {
	program, err := programFor(dsn)
	if err != nil {
		return nil, err
	}
	return launchProgram(nil, program, dir, dsn, flags...)
}

// programFor returns what serves a database: on Postgres this binary, with the race detector. With that a start
// costs three times the processor, and hundreds of starts are most of what these tests cost. What differs
// between databases is tested within processes, with the detector, in other packages.
func programFor(dsn string) (string, error) {
	if dialects.Scheme(dsn) == "postgres" {
		return os.Executable()
	}
	return built()
}

// launchBuilt is launch without the race detector, on any database.
func launchBuilt(dir, dsn string, flags ...string) (*process, error) {
	program, err := built()
	if err != nil {
		return nil, err
	}
	return launchProgram(nil, program, dir, dsn, flags...)
}

func launchProgram(env []string, program, dir, dsn string, flags ...string) (*process, error) {
	p := &process{dir: dir, log: filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".log"), exited: make(chan struct{})}
	args := append([]string{"serve", "--listen=127.0.0.1:0", "--data-dir=" + dir, "--dsn=" + dsn}, flags...)
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Dir(dir)
	cmd.Env = slices.Concat(os.Environ(), []string{asPlinth + "=1"}, env)
	return p, p.start(cmd)
}

func (p *process) start(cmd *exec.Cmd) error {
	what := "starting plinth"
	if cmd.Path == os.Args[0] {
		what += " with the race detector, if the tests have it"
	}
	defer spent.On(what, time.Now())
	stderr, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer stderr.Close()
	p.cmd, cmd.Stderr = cmd, stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	// The line comes when the server is ready, or the output ends because it died.
	line, err := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		_ = cmd.Wait()
		close(p.exited)
	}()
	if err != nil {
		<-p.exited
		return fmt.Errorf("plinth ended with %v: %s", cmd.ProcessState, p.logged())
	}
	_, url, found := strings.Cut(strings.TrimSpace(line), "# serving ")
	if !found {
		p.kill()
		return fmt.Errorf("first line of output: %q", line)
	}
	p.url = url
	return nil
}

// stop ends the server gracefully; it must exit with 0.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.exited
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("plinth ended with %v", p.cmd.ProcessState)
	}
	return nil
}

// kill ends the server as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) logged() string {
	text, _ := os.ReadFile(p.log)
	return string(text)
}

func (p *process) kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }

// config is the admin's, with no limit on its rate.
func (p *process) config(t testing.TB) *clientrest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

// serveFor starts a plinth that is stopped at the end of the test if it still runs.
func serveFor(t testing.TB, dir, dsn string, flags ...string) *process {
	t.Helper()
	p, err := launch(dir, dsn, flags...)
	return untilEnd(t, p, err)
}

// serveMeasured is serveFor for tests of memory: without the race detector, and with garbage collected as often as users have
// it, which make test's GOGC is not.
func serveMeasured(t testing.TB, dir, dsn string, flags ...string) *process {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p, err := launchProgram([]string{"GOGC=100"}, program, dir, dsn, flags...)
	return untilEnd(t, p, err)
}

// untilEnd returns a process that was launched, which is stopped at the end of the test.
func untilEnd(t testing.TB, p *process, err error) *process {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.running() {
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}
		p.report(t)
	})
	return p
}

// report shows the server's log if the test has failed. It fails the test if the race detector has
// reported a race in the server or a handler has panicked.
func (p *process) report(t testing.TB) {
	text := p.logged()
	quiet := strings.ReplaceAll(text, "panicking=false", "") // upstream says so at high verbosity
	if strings.Contains(text, "DATA RACE") || strings.Contains(quiet, "panic") {
		t.Error("the server raced or panicked")
	}
	if t.Failed() {
		t.Logf("%s:\n%s", p.log, text)
	}
}
