package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// realNode is a node with the kubelet of Kubernetes. Its containers are processes, by the
// runtime in testdata/cluster.
type realNode struct {
	*component
	shell   *docShell // has the files of the node
	name    string
	address string
	port    int32
	static  string // directory of the manifests of static pods
}

// kubeletTaint keeps pods off the kubelets' nodes that are not meant for them.
var kubeletTaint = corev1.Taint{Key: "example.com/kubelet", Effect: corev1.TaintEffectNoSchedule}

// kubeletMachine takes address and port, and the directory of static pods. It is what the kubelet
// is given beside the configuration in docs/cluster.md.
// Times are short, so that changes are noticed within a test. The machine may lack what nodes
// have (cgroups of its own or of version 2, space on its disk, iptables); containers don't need it here.
const kubeletMachine = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
port: %d
healthzPort: 0
staticPodPath: %q
registerWithTaints:
- {key: example.com/kubelet, effect: NoSchedule}
fileCheckFrequency: 1s
syncFrequency: 1s
nodeStatusUpdateFrequency: 2s
nodeStatusReportFrequency: 5s
nodeLeaseDurationSeconds: 12
featureGates: {KubeletInUserNamespace: true}
cgroupsPerQOS: false
enforceNodeAllocatable: []
evictionHard: {nodefs.available: 0%%, imagefs.available: 0%%, memory.available: 0%%}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
maxOpenFiles: 1024
oomScoreAdj: 0
resolvConf: ""
volumePluginDir: /var/lib/kubelet/volumeplugins
`

// kubeletScript is the kubelet of a node's shell.
const kubeletScript = `#!/bin/sh
exec %s "$BIN" "$@"
`

// node prepares a machine: the files that docs/cluster.md says a node needs, and a kubelet that
// runs there.
func (c *realCluster) node(t *testing.T, shell *docShell, name string) *realNode {
	t.Helper()
	address := freeAddress(t)
	n := &realNode{shell: shell, name: name, address: address.IP.String(), port: int32(address.Port), static: shell.path("/etc/kubernetes/manifests")}
	if name == "" {
		n.name = n.address
	}
	for _, dir := range []string{"pki", "manifests", "kubelet.yaml.d"} {
		must(t, os.MkdirAll(shell.path("/etc/kubernetes/"+dir), 0o700))
	}
	n.copyTo(t, "cluster/pki/ca.crt", "/etc/kubernetes/pki/ca.crt")
	shell.playDocumented(t, "cat > /etc/kubernetes/kubelet.yaml")
	machine := fmt.Appendf(nil, kubeletMachine, n.address, n.port, n.static)
	must(t, os.WriteFile(shell.path("/etc/kubernetes/kubelet.yaml.d/machine.conf"), machine, 0o600))
	script, err := filepath.Abs(filepath.Join("testdata", "cluster", "node.sh"))
	must(t, err)
	must(t, os.WriteFile(shell.path("/usr/local/bin/kubelet"), fmt.Appendf(nil, kubeletScript, script), 0o755))
	return n
}

// copyTo copies a file to the node.
func (n *realNode) copyTo(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.shell.home(), from))
	must(t, err)
	must(t, os.WriteFile(n.shell.path(to), text, 0o600))
}

// kubeletCommand is that of docs/cluster.md.
const kubeletCommand = "kubelet --config"

// startKubelet runs the node's kubelet, with a command like kubeletCommand.
func (c *realCluster) startKubelet(t *testing.T, n *realNode, text string) {
	t.Helper()
	n.component = c.startShown(t, n.shell, "kubelet", text, "--hostname-override="+n.name, "--node-ip="+n.address,
		"--config-dir="+n.shell.path("/etc/kubernetes/kubelet.yaml.d"))
}

// addKubelet starts a node that joins without a token. Its name is its address.
func (c *realCluster) addKubelet(t *testing.T) *realNode {
	t.Helper()
	n := c.node(t, c.shell, "")
	begin := "plinth kubeconfig --data-dir cluster --user system:node:node-2"
	c.shell.mustRun(begin, strings.ReplaceAll(c.shell.translated(t, begin), "node-2", n.name))
	n.copyTo(t, n.name+".kubeconfig", "/etc/kubernetes/kubelet.kubeconfig")
	c.startKubelet(t, n, withoutBootstrap.ReplaceAllString(c.shell.documented(t, kubeletCommand).text, ""))
	return n
}

var withoutBootstrap = regexp.MustCompile(`--bootstrap-kubeconfig=\S+ `)

// freeAddress is one that the kubelet may listen on: kubelets can't choose a port. It is none
// of the loopback network if the machine has another, since no API server proxies to those.
func freeAddress(t *testing.T) *net.TCPAddr {
	t.Helper()
	host := net.IPv4(127, 0, 0, 1)
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			host = n.IP
			break
		}
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: host})
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr)
}

// kubeconfigOf returns a kubeconfig with a new certificate of plinth's authority.
func (c *realCluster) kubeconfigOf(t *testing.T, user string, groups ...string) string {
	t.Helper()
	args := []string{"kubeconfig", "--data-dir=" + c.plinth.dir, "--user=" + user}
	for _, group := range groups {
		args = append(args, "--group="+group)
	}
	cmd, stderr := plinth(t, nil, args...)
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("plinth %s: %v: %s", strings.Join(args, " "), err, stderr)
	}
	name := filepath.Join(cmd.Dir, "kubeconfig")
	must(t, os.WriteFile(name, text, 0o600))
	return name
}

// restart ends plinth and starts it where it was, with more flags.
func (c *realCluster) restart(t *testing.T, flags ...string) {
	t.Helper()
	must(t, c.plinth.stop())
	c.plinth = serveFor(t, c.plinth.dir, c.dsn, slices.Concat(c.flags, flags)...)
}

// pod is one for the node, with a container that runs a shell script.
func (n *realNode) pod(name, script string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelsOf(name)},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: n.name},
			Tolerations:                   []corev1.Toleration{{Key: kubeletTaint.Key, Operator: corev1.TolerationOpExists}},
			TerminationGracePeriodSeconds: ptr.To[int64](60),
			Containers: []corev1.Container{{
				Name: "main", Image: "example.com/one", ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script},
			}},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// addPod makes a pod and waits until it is ready.
func (c *realCluster) addPod(t *testing.T, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	_, err := c.kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	return c.awaitPod(t, namespace, pod.Name, "is ready", podIsReady)
}

// awaitPod waits until there is a pod that is as it should be.
func (c *realCluster) awaitPod(t *testing.T, namespace, name, what string, condition func(*corev1.Pod) bool) (p *corev1.Pod) {
	t.Helper()
	c.soon(t, "the pod "+name+" "+what, func() bool {
		var err error
		p, err = c.kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && condition(p)
	})
	return p
}

func podIsReady(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
