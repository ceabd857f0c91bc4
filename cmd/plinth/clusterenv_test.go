package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// clusterTools are programs of Kubernetes and others, as testdata/cluster/go.mod has them,
// and our own container runtime for kubelets.
var clusterTools = []string{
	"k8s.io/kubernetes/cmd/kube-controller-manager",
	"k8s.io/kubernetes/cmd/kube-scheduler",
	"k8s.io/kubernetes/cmd/kubelet",
	"./runtime",
	"sigs.k8s.io/kwok/cmd/kwok",
	"helm.sh/helm/v3/cmd/helm",
}

// buildCluster builds the tools into dir. The first time it takes minutes; then most of it
// is in Go's cache.
func buildCluster(dir string) error {
	args := append([]string{"build", "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v1.33.13", "-o", dir + "/"}, clusterTools...)
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("testdata", "cluster")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// realCluster is a plinth with a cluster's components around it. Its nodes are simulated by
// kwok, those with the label kwok=a by one, those with kwok=b by another that can be lost;
// but for one that has a kubelet.
type realCluster struct {
	bin, dir   string
	dsn        string
	plinth     *process
	kube       kubernetes.Interface
	components []*component
	nodes      map[string]*component // by the value of the label
	kubelet    *realNode
}

// clusterFlags are plinth's: the controllers run beside it, and a kubelet may change what is
// its own only.
var clusterFlags = []string{"--controllers=none", "--enable-admission-plugins=NodeRestriction"}

// newRealCluster starts everything. The node's times are shorter than by default, so that
// the loss of one is noticed within a test.
func newRealCluster(t *testing.T, bin, dsn string) *realCluster {
	t.Helper()
	dir := t.TempDir()
	c := &realCluster{bin: bin, dir: dir, dsn: dsn, nodes: map[string]*component{}}
	c.plinth = serveFor(t, filepath.Join(dir, "data"), dsn, clusterFlags...)
	c.kube = kubernetes.NewForConfigOrDie(c.plinth.config(t))
	pki := filepath.Join(c.plinth.dir, "pki")
	c.start(t, "kube-controller-manager", "--leader-elect=true", "--secure-port=0",
		"--use-service-account-credentials=false",
		"--service-account-private-key-file="+filepath.Join(pki, "sa.key"),
		"--root-ca-file="+filepath.Join(pki, "ca.crt"),
		"--cluster-signing-cert-file="+filepath.Join(pki, "ca.crt"), "--cluster-signing-key-file="+filepath.Join(pki, "ca.key"),
		"--node-monitor-period=1s", "--node-monitor-grace-period=20s", "--node-startup-grace-period=40s",
		"--kube-api-qps=200", "--kube-api-burst=400")
	c.start(t, "kube-scheduler", "--leader-elect=true", "--secure-port=0", "--kube-api-qps=200", "--kube-api-burst=400")
	for _, group := range []string{"a", "b"} {
		c.nodes[group] = c.start(t, "kwok", "--manage-all-nodes=false", "--manage-nodes-with-label-selector=kwok="+group,
			"--node-lease-duration-seconds=12")
	}
	c.kubelet = c.addKubelet(t)
	return c
}

// component is a running program.
type component struct {
	name string
	cmd  *exec.Cmd
	log  string
	once sync.Once
}

// start runs one of the tools as the cluster's admin until the end of the test.
func (c *realCluster) start(t *testing.T, program string, args ...string) *component {
	t.Helper()
	return c.startProgram(t, filepath.Join(c.bin, program), append(args, "--kubeconfig="+c.plinth.kubeconfig())...)
}

func (c *realCluster) startProgram(t *testing.T, path string, args ...string) *component {
	t.Helper()
	program := filepath.Base(path)
	log, err := os.CreateTemp(c.dir, program+"-*.log")
	must(t, err)
	defer log.Close()
	p := &component{name: program, cmd: exec.Command(path, args...), log: log.Name()}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.dir, log, log
	p.cmd.Env = append(os.Environ(), "HOME="+c.dir)
	must(t, p.cmd.Start())
	c.components = append(c.components, p)
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("%s: the end of its log:\n%s", program, tail(p.log, 40))
		}
	})
	return p
}

// stop ends a component for good, without a farewell.
func (p *component) stop() {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		_ = p.cmd.Wait()
	})
}

// complaints are lines of a log that no API server should be the reason of: crashes, and
// objects or answers that could not be read.
func (p *component) complaints() (lines []string) {
	text, _ := os.ReadFile(p.log)
	for line := range strings.Lines(string(text)) {
		for _, word := range []string{"Observed a panic", "\npanic: ", "\nfatal error: ", "the runtime has ended", "couldn't get resource list", "no kind ", "unable to decode", "Failed to watch", "strict decoding error"} {
			if strings.Contains("\n"+line, word) {
				lines = append(lines, line)
				break
			}
		}
	}
	return lines
}

func tail(name string, n int) string {
	text, _ := os.ReadFile(name)
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// addNode makes a node as a kubelet does when it registers.
func (c *realCluster) addNode(t *testing.T, name, group string, taints ...corev1.Taint) {
	t.Helper()
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	_, err := c.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kwok": group, corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status:     corev1.NodeStatus{Allocatable: room, Capacity: room},
	}, metav1.CreateOptions{})
	must(t, err)
}

// command is kubectl or helm, run by the cluster's admin.
func (c *realCluster) command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(c.bin, program)
	if program == "kubectl" {
		var err error
		path, err = kubectl()
		must(t, err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.plinth.kubeconfig(), "HOME="+c.dir,
		"HELM_CACHE_HOME="+c.dir, "HELM_CONFIG_HOME="+c.dir, "HELM_DATA_HOME="+c.dir)
	return cmd
}

// run runs kubectl or helm, which must succeed, and returns what it printed.
func (c *realCluster) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := c.command(t, program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}
