package main

import (
	"bufio"
	"fmt"
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

// TestDemo plays what the README says about make demo: a line to paste, a Deployment that
// becomes ready, and Ctrl-C, which ends all that was started. Then the same again, on the data
// of before, until one of the programs is killed.
func TestDemo(t *testing.T) {
	if os.Getenv("PLINTH_TEST_CLUSTER") == "" {
		t.Skip("PLINTH_TEST_CLUSTER is not set; make test-cluster sets it")
	}
	dir := filepath.Join(t.TempDir(), "demo")
	d := startDemo(t, dir)
	d.kubectl(t, "create", "deployment", "web", "--image=nginx", "--replicas=5")
	d.kubectl(t, "rollout", "status", "deployment", "web", "--timeout=2m")
	if ready := d.ready(t); ready != 5 {
		t.Errorf("%d replicas are ready", ready)
	}
	// The signal goes to make and the demo, as from a terminal, not to the programs of the demo.
	must(t, syscall.Kill(-d.cmd.Process.Pid, syscall.SIGINT))
	d.wait(t)
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("still running after Ctrl-C: %v", left)
	}

	d = startDemo(t, dir)
	d.kubectl(t, "rollout", "status", "deployment", "web", "--timeout=2m")
	if ready := d.ready(t); ready != 5 {
		t.Errorf("%d replicas are ready on the second day", ready)
	}
	for pid, command := range processesOf(t, dir) {
		if strings.Contains(command, "kube-scheduler") {
			must(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	d.wait(t)
	for _, want := range []string{"kube-scheduler ended (signal: killed)", filepath.Join(dir, "log", "kube-scheduler.log")} {
		if !strings.Contains(d.output(), want) {
			t.Errorf("no %q in %s", want, d.output())
		}
	}
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("still running after one has died: %v", left)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runningDemo is a make demo that has printed its instructions.
type runningDemo struct {
	cmd        *exec.Cmd
	out        string // file of what it printed
	kubeconfig string
	exited     chan struct{}
}

func startDemo(t *testing.T, dir string) *runningDemo {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	must(t, err)
	defer out.Close()
	d := &runningDemo{out: out.Name(), exited: make(chan struct{})}
	d.cmd = exec.Command("make", "-C", filepath.Join("..", ".."), "demo", "DEMO_DIR="+dir)
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	d.cmd.Stderr = out
	stdout, err := d.cmd.StdoutPipe()
	must(t, err)
	must(t, d.cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGINT)
		<-d.exited
	})
	lines := make(chan string)
	go func() {
		for text := bufio.NewScanner(stdout); text.Scan(); {
			lines <- text.Text()
		}
		close(lines)
		_ = d.cmd.Wait()
		close(d.exited)
	}()
	for line := range lines {
		paste, found := strings.CutPrefix(line, "export KUBECONFIG=")
		if found {
			d.kubeconfig, _, _ = strings.Cut(paste, " ")
		}
		if strings.Contains(line, "Ctrl-C") {
			go func() {
				for range lines {
				}
			}()
			return d
		}
	}
	t.Fatalf("make demo ended: %s", d.output())
	return nil
}

func (d *runningDemo) output() string {
	text, _ := os.ReadFile(d.out)
	return string(text)
}

func (d *runningDemo) wait(t *testing.T) {
	t.Helper()
	select {
	case <-d.exited:
	case <-time.After(2 * time.Minute):
		t.Fatalf("the demo still runs: %s", d.output())
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

// processesOf returns the processes that have dir in their arguments, with their command lines.
func processesOf(t *testing.T, dir string) map[int]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	found := map[int]string{}
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended
		if command := strings.ReplaceAll(string(text), "\x00", " "); strings.Contains(command, dir) {
			var pid int
			if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil {
				found[pid] = command
			}
		}
	}
	return found
}
