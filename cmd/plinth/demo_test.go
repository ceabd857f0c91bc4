package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
)

// needComponents skips a test of what only a plinth with the components has.
func needComponents(t *testing.T) {
	t.Helper()
	if os.Getenv(clusterVariable) == "" {
		t.Skipf("%s is not set; make test-cluster sets it", clusterVariable)
	}
	if makeComponents == nil {
		t.Fatal("the test is built without the tag cluster; make test-cluster sets it")
	}
}

// TestDemo plays what the README says about make demo: a line to paste, a Deployment that becomes ready, and Ctrl-C, which
// leaves nothing. With a directory of its own the next demo goes on with what is there.
func TestDemo(t *testing.T) {
	needComponents(t)
	d := startDemo(t)
	d.kubectl(t, "create", "deployment", "web", "--image=nginx", "--replicas=5")
	d.kubectl(t, "rollout", "status", "deployment", "web", "--timeout=1m")
	if ready := d.ready(t); ready != 5 {
		t.Errorf("%d replicas are ready", ready)
	}
	d.interrupt(t)
	if left, err := os.ReadDir(d.temporary); err != nil || len(left) > 0 {
		t.Errorf("it has left %v, %v", left, err)
	}

	dir := filepath.Join(t.TempDir(), "kept")
	d = startDemo(t, "--data-dir="+dir)
	d.kubectl(t, "create", "deployment", "web", "--image=nginx", "--replicas=5")
	d.interrupt(t)
	d = startDemo(t, "--data-dir="+dir)
	d.kubectl(t, "rollout", "status", "deployment", "web", "--timeout=1m")
	if ready := d.ready(t); ready != 5 {
		t.Errorf("%d replicas are ready on the second day", ready)
	}
	d.interrupt(t)
}

// runningDemo is a demo that has printed its instructions.
type runningDemo struct {
	cmd        *exec.Cmd
	temporary  string // its TMPDIR
	log        string // file of its standard error
	kubeconfig string
	exited     chan struct{}
}

func startDemo(t *testing.T, flags ...string) *runningDemo {
	t.Helper()
	d := &runningDemo{temporary: t.TempDir(), log: filepath.Join(t.TempDir(), "log"), exited: make(chan struct{})}
	program, err := built()
	must(t, err)
	log, err := os.Create(d.log)
	must(t, err)
	defer log.Close()
	d.cmd = exec.Command(program, append([]string{"demo"}, flags...)...)
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.temporary)
	d.cmd.Stderr = log
	stdout, err := d.cmd.StdoutPipe()
	must(t, err)
	must(t, d.cmd.Start())
	said := make(chan string, 100)
	go func() {
		for text := bufio.NewScanner(stdout); text.Scan(); {
			said <- text.Text()
		}
		close(said)
		_ = d.cmd.Wait()
		close(d.exited)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.exited
	})
	for line := range said {
		if paste, found := strings.CutPrefix(line, "export KUBECONFIG="); found {
			d.kubeconfig, _, _ = strings.Cut(paste, " ")
		}
		if strings.HasPrefix(line, "They are ready after") {
			t.Log(line)
		}
		if strings.HasPrefix(line, "Ctrl-C") {
			return d
		}
	}
	text, _ := os.ReadFile(d.log)
	t.Fatalf("the demo ended: %s", text)
	return nil
}

// interrupt ends the demo as Ctrl-C does, and checks that it had nothing to complain about.
func (d *runningDemo) interrupt(t *testing.T) {
	t.Helper()
	must(t, d.cmd.Process.Signal(syscall.SIGINT))
	select {
	case <-d.exited:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if text, err := os.ReadFile(d.log); err != nil || len(text) > 0 {
		t.Errorf("it logged %s, %v", text, err)
	}
}

func (d *runningDemo) kubectl(t *testing.T, args ...string) {
	t.Helper()
	path, err := kubectltest.Path()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (d *runningDemo) ready(t *testing.T) int32 {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig)
	must(t, err)
	web, err := kubernetes.NewForConfigOrDie(config).AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	return web.Status.ReadyReplicas
}
