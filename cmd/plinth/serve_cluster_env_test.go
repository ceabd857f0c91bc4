package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/spent"
	"github.com/plinth-io/plinth/server/kind"
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

// olderTools are those of them that run in an older release, too: kubelets may be three releases older than the API
// server. testdata/oldest/go.mod has them.
var olderTools = []string{
	"k8s.io/kubernetes/cmd/kube-controller-manager",
	"k8s.io/kubernetes/cmd/kubelet",
}

// buildCluster builds the tools into dir.
func buildCluster(dir string) error {
	return buildPrograms("cluster", kind.Release, dir+"/", clusterTools...)
}

// buildOlder builds the oldest release of olderTools into dir, and returns that release.
func buildOlder(t *testing.T, dir string) string {
	t.Helper()
	release := moduleVersions(t, filepath.Join("testdata", "oldest", "go.mod"))["k8s.io/kubernetes"]
	must(t, buildPrograms("oldest", release, dir+"/", olderTools...))
	return release
}

// buildPrograms builds programs from a module below testdata, which take version for Kubernetes' one.
// The first time it takes minutes; then most of it is in Go's cache.
func buildPrograms(module, version, output string, programs ...string) error {
	defer spent.On("building programs of testdata/"+module, time.Now())
	args := append([]string{"build", "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=" + version, "-o", output}, programs...)
	return goIn(filepath.Join("testdata", module), args...)
}

// eachWanted runs test on the dialects that variable names, separated by commas.
func eachWanted(t *testing.T, variable string, test func(*testing.T, logtest.Dialect)) {
	t.Helper()
	wanted := strings.Split(os.Getenv(variable), ",")
	for _, d := range logtest.Dialects {
		if slices.Contains(wanted, d.Name) {
			t.Run(d.Name, func(t *testing.T) { test(t, d) })
		}
	}
}

// realCluster is a plinth with a cluster's components around it, set up by the commands of
// docs/cluster.md. Its nodes are simulated by kwok, those with the label kwok=a by one, those with
// kwok=b by another that can be lost; but for those that have a kubelet.
type realCluster struct {
	bin, dir           string
	kubeletRelease     string
	inside             bool // controller manager and scheduler are in plinth
	dsn                string
	shell              *docShell // in dir
	flags              []string  // of plinth
	manager, scheduler string    // their ports
	plinth             *process
	kube               kubernetes.Interface
	nodes              map[string]*component // by the value of the label
	kubelet            *realNode

	mu         sync.Mutex // guards components
	components []*component
}

// auditPolicy has every request in the log, so that testIdentities knows who sent it.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// newRealCluster starts everything. The node's times are shorter than by default, so that
// the loss of one is noticed within a test.
func newRealCluster(t *testing.T, bin, kubeletRelease, dsn string, inside bool) *realCluster {
	t.Helper()
	shell := newDocShell(t, "export KUBECONFIG=cluster/kubeconfig")
	dir := shell.home()
	c := &realCluster{bin: bin, dir: dir, kubeletRelease: kubeletRelease, inside: inside, dsn: dsn, shell: shell, nodes: map[string]*component{}}
	policy := filepath.Join(dir, "audit.yaml")
	must(t, os.WriteFile(policy, []byte(auditPolicy), 0o600))
	monitor := []string{"--node-monitor-period=1s", "--node-monitor-grace-period=20s", "--node-startup-grace-period=40s"}
	if inside {
		c.flags = append(shell.flagsOf(t, "plinth serve --cluster"), "--cluster")
		for _, flag := range monitor {
			c.flags = append(c.flags, "--kube-controller-manager-arg="+flag)
		}
	} else {
		c.flags = append([]string{"--data-dir"}, shell.flagsOf(t, "plinth serve --data-dir")...)
	}
	c.flags = append(c.flags, "--tls-san=plinth.example.com", "--audit-policy-file="+policy, "--audit-log-path="+filepath.Join(dir, "audit.log"))
	c.plinth = serveFor(t, filepath.Join(dir, "cluster"), dsn, c.flags...)
	c.kube = kubernetes.NewForConfigOrDie(c.plinth.config(t))
	for _, begin := range []string{
		"plinth kubeconfig --data-dir cluster --user system:kube-controller-manager", "plinth kubeconfig --data-dir cluster --user system:kube-scheduler",
		"kubectl apply -f - <<EOF\napiVersion: rbac", "kubectl create clusterrolebinding node-bootstrap",
	} {
		shell.playDocumented(t, begin)
	}
	c.startComponents(t, monitor)
	stages, err := exec.Command(filepath.Join("testdata", "cluster", "stages.sh")).Output()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "stage-fast.yaml"), stages, 0o600))
	for _, group := range []string{"a", "b"} {
		c.nodes[group] = c.startDocumented(t, "kwok", "--manage-all-nodes=false", "--manage-nodes-with-label-selector=kwok="+group,
			"--node-lease-duration-seconds=12")
	}
	c.kubelet = c.addKubelet(t)
	return c
}

// startComponents runs controller manager and scheduler, unless they are in plinth.
func (c *realCluster) startComponents(t *testing.T, monitor []string) {
	t.Helper()
	if c.inside {
		return
	}
	fast := []string{"--kube-api-qps=200", "--kube-api-burst=400", "--bind-address=127.0.0.1"}
	c.manager, c.scheduler = freePort(t), freePort(t)
	c.startDocumented(t, "kube-controller-manager", slices.Concat(fast, monitor, []string{"--secure-port=" + c.manager})...)
	c.startDocumented(t, "kube-scheduler", append(fast, "--secure-port="+c.scheduler)...)
}

// component is a running program.
type component struct {
	name string
	cmd  *exec.Cmd
	log  string
	once sync.Once
}

// startDocumented runs a program as docs/cluster.md says, with more flags, until the end of the test.
func (c *realCluster) startDocumented(t *testing.T, program string, flags ...string) *component {
	t.Helper()
	return c.startShown(t, c.shell, program, c.shell.documented(t, program+" --").text, flags...)
}

// startShown runs a program by a command of a document, with more flags.
func (c *realCluster) startShown(t *testing.T, shell *docShell, program, text string, flags ...string) *component {
	t.Helper()
	text, err := shell.translate(text)
	must(t, err)
	args := append([]string{"-c", "exec " + text + ` "$@"`, program}, flags...)
	cmd := exec.Command("bash", args...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "ROOT="+shell.root, "BIN="+c.bin,
		"PATH="+strings.Join([]string{filepath.Join(shell.root, "usr/local/bin"), c.bin, os.Getenv("PATH")}, ":"))
	return c.startProgram(t, program, shell.home(), cmd)
}

// startProgram runs a command until the end of the test.
func (c *realCluster) startProgram(t *testing.T, name, dir string, cmd *exec.Cmd) *component {
	t.Helper()
	log, err := os.CreateTemp(c.dir, name+"-*.log")
	must(t, err)
	defer log.Close()
	p := &component{name: name, cmd: cmd, log: log.Name()}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	must(t, cmd.Start())
	c.mu.Lock()
	c.components = append(c.components, p)
	c.mu.Unlock()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("%s: the end of its log:\n%s", name, tail(p.log, 40))
		}
	})
	return p
}

// stop kills a component.
func (p *component) stop() {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		_ = p.cmd.Wait()
	})
}

// badLine matches lines of a log that an API server must not cause: crashes, objects or answers
// that could not be read, and permissions that a component lacks.
var badLine = regexp.MustCompile(`Observed a panic|^panic: |^fatal error: |the runtime has ended|couldn't get resource list|no kind |unable to decode|Failed to watch|strict decoding error|" cannot `)

// excused matches complaints that kubelets have with every API server. Until they have joined they
// are nobody. A kubelet closes its own connections when its certificate is replaced. When a pod is
// gone, the Node authorizer does not know whose it was.
var excused = regexp.MustCompile(`User \\?"system:anonymous\\?" cannot |force closed via ClientConn.Close|use of closed network connection|"Failed to get status for pod".*no relationship found`)

// complaints are the lines of a component's log that match badLine.
func (p *component) complaints() (lines []string) {
	text, _ := os.ReadFile(p.log)
	for line := range strings.Lines(string(text)) {
		if badLine.MatchString(line) && !(p.name == "kubelet" && excused.MatchString(line)) {
			lines = append(lines, line)
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
		path, err = kubectltest.Path()
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

// TestModuleVersions compares plinth's module with those of the programs that tests build and that share libraries with it:
// with the same versions, these are compiled once for all. Otherwise make demo and make test-cluster compile all of Kubernetes'
// again, and make test gRPC and what is on it.
func TestModuleVersions(t *testing.T) {
	for _, module := range []string{"cluster", "etcd", "kine", "promtool"} {
		sameVersions(t, module)
	}
}

// sameVersions compares plinth's own module with one below testdata, whose versions it returns.
func sameVersions(t *testing.T, module string) map[string]string {
	t.Helper()
	versions := moduleVersions(t, filepath.Join("testdata", module, "go.mod"))
	for path, version := range moduleVersions(t, filepath.Join("..", "..", "go.mod")) {
		if other := versions[path]; other != "" && other != version {
			t.Errorf("testdata/%s/go.mod has %s %s, ../../go.mod has %s: write the same, with a replace line if something asks for a newer one", module, path, other, version)
		}
	}
	return versions
}

// moduleVersions are the versions in a go.mod, by module, as its replace lines have them.
func moduleVersions(t *testing.T, file string) map[string]string {
	t.Helper()
	type module struct{ Path, Version string }
	var parsed struct {
		Require []module
		Replace []struct{ Old, New module }
	}
	out, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	must(t, err)
	must(t, json.Unmarshal(out, &parsed))
	versions := map[string]string{}
	for _, m := range parsed.Require {
		versions[m.Path] = m.Version
	}
	for _, r := range parsed.Replace {
		versions[r.Old.Path] = r.New.Version
	}
	return versions
}
