package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// joinedMachine takes the name of the machine's configuration of the kubelet, and its address. It is a file where docs/cluster.md
// says that further flags may be.
const joinedMachine = `KUBELET_EXTRA_ARGS="--config-dir=%s --node-ip=%s"
`

// A machine becomes a node by the line of plinth join-command: its kubelet, which runs by the unit that the line has written,
// gets its certificate, and runs pods.
func testJoinCommand(t *testing.T, c *realCluster, namespace string) {
	port := c.plinth.address()[strings.LastIndex(c.plinth.address(), ":"):]
	// On the machine the name is that of plinth, because /etc/hosts says so.
	shell := newDocShell(t, fmt.Sprintf("export KUBECONFIG=%q", c.plinth.kubeconfig()), "plinth.example.com:6443", "plinth.example.com"+port)
	j := &joinedNode{realCluster: c, shell: shell, namespace: namespace}
	j.paste(t)
	for _, s := range []struct {
		name string
		test func(*joinedNode, *testing.T)
	}{{"certificate", (*joinedNode).testCertificate}, {"serving", (*joinedNode).testServing}, {"configuration", (*joinedNode).testConfiguration}, {"pod", (*joinedNode).testPod}} {
		if !t.Run(s.name, func(t *testing.T) { s.test(j, t) }) {
			t.FailNow()
		}
	}
}

// joinedNode is worker-1 of docs/cluster.md.
type joinedNode struct {
	*realCluster
	shell     *docShell
	namespace string
	node      *realNode
	tokenID   string
}

var tokenSecret = regexp.MustCompile(`made the Secret bootstrap-token-(\w{6}) in kube-system`)

// paste asks for the line, and pastes it on a new machine.
func (j *joinedNode) paste(t *testing.T) {
	t.Helper()
	ask := j.shell.translated(t, "plinth join-command")
	told := j.shell.mustRun("join-command", ask+" 2>&1 >line")
	match := tokenSecret.FindStringSubmatch(told)
	if match == nil || strings.Contains(told, "warning") {
		t.Fatalf("plinth join-command says %s", told)
	}
	j.tokenID = match[1]
	address := freeAddress(t)
	j.node = &realNode{shell: j.shell, name: "worker-1", address: address.IP.String(), port: int32(address.Port), static: "/etc/kubernetes/manifests"}
	j.makeMachine(t)
	script, err := filepath.Abs(filepath.Join("testdata", "cluster", "machine.sh"))
	must(t, err)
	j.node.component = j.startProgram(t, "kubelet", j.shell.home(), exec.Command(script, j.shell.root, j.bin, filepath.Join(j.shell.home(), "line")))
	j.soon(t, "worker-1 is ready", func() bool {
		n, err := j.kube.CoreV1().Nodes().Get(t.Context(), j.node.name, metav1.GetOptions{})
		return err == nil && isReady(n)
	})
}

// makeMachine makes the folder that is /etc on the machine: a copy of this one's, without what concerns kubelets.
func (j *joinedNode) makeMachine(t *testing.T) {
	t.Helper()
	etc := j.shell.path("/etc")
	_ = exec.Command("cp", "-a", "/etc/.", etc).Run() // what only root may read is left out
	for _, name := range []string{"kubernetes", "default/kubelet", "systemd/system/kubelet.service", "systemd/system/kubelet.service.d"} {
		must(t, os.RemoveAll(filepath.Join(etc, name)))
	}
	for _, dir := range []string{"etc/default", "etc/kubernetes/kubelet.yaml.d", "etc/kubernetes/manifests", "etc/systemd/system", "var/lib/kubelet"} {
		must(t, os.MkdirAll(filepath.Join(j.shell.root, dir), 0o755))
	}
	hosts, _ := os.ReadFile(filepath.Join(etc, "hosts"))
	for name, text := range map[string]string{
		"hosts":                              "127.0.0.1 plinth.example.com\n" + string(hosts),
		"default/kubelet":                    fmt.Sprintf(joinedMachine, "/etc/kubernetes/kubelet.yaml.d", j.node.address),
		"kubernetes/kubelet.yaml.d/own.conf": fmt.Sprintf(kubeletMachine, j.node.address, j.node.port, j.node.static),
	} {
		must(t, os.RemoveAll(filepath.Join(etc, name))) // it may be a link
		must(t, os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644))
	}
}

// The token of the line was used to request a certificate, which the controller manager has signed.
func (j *joinedNode) testCertificate(t *testing.T) {
	j.autoApproved(t, "system:bootstrap:"+j.tokenID)
	subject := j.currentCertificate(t, j.node).Subject
	if subject.CommonName != "system:node:worker-1" || !cmp.Equal(subject.Organization, []string{"system:nodes"}) {
		t.Errorf("the certificate is %s's", subject)
	}
	kubeconfig := j.shell.path("/etc/kubernetes/kubelet.conf")
	text, err := os.ReadFile(kubeconfig)
	must(t, err)
	server := "https://" + net.JoinHostPort("plinth.example.com", j.plinth.address()[strings.LastIndex(j.plinth.address(), ":")+1:])
	if !strings.Contains(string(text), server) || !strings.Contains(string(text), "/var/lib/kubelet/pki/kubelet-client-current.pem") {
		t.Errorf("%s: %s", kubeconfig, text)
	}
}

// The admin approves the request for a serving certificate, as in docs/cluster.md, and the kubelet can be asked.
func (j *joinedNode) testServing(t *testing.T) {
	j.request(t, "kubernetes.io/kubelet-serving", "system:node:worker-1")
	j.shell.playDocumented(t, "for request in")
	j.soon(t, "the kubelet can be asked", func() bool {
		out, err := j.command(t, "kubectl", "get", "--raw", "/api/v1/nodes/worker-1/proxy/healthz").CombinedOutput()
		return err == nil && string(out) == "ok"
	})
}

// The kubelet runs with the configuration of the line.
func (j *joinedNode) testConfiguration(t *testing.T) {
	var got struct {
		Kubelet kubeletconfig.KubeletConfiguration `json:"kubeletconfig"`
	}
	must(t, json.Unmarshal([]byte(j.run(t, "kubectl", "get", "--raw", "/api/v1/nodes/worker-1/proxy/configz")), &got))
	k := got.Kubelet
	for what, pair := range map[string][2]any{
		"clusterDNS":               {k.ClusterDNS, []string{"10.96.0.10"}},
		"clusterDomain":            {k.ClusterDomain, "cluster.local"},
		"containerRuntimeEndpoint": {k.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock"},
		"clientCAFile":             {k.Authentication.X509.ClientCAFile, "/etc/kubernetes/pki/ca.crt"},
		"anonymous":                {*k.Authentication.Anonymous.Enabled, false},
		"webhook":                  {*k.Authentication.Webhook.Enabled, true},
		"authorization":            {k.Authorization.Mode, kubeletconfig.KubeletAuthorizationModeWebhook},
		"cgroupDriver":             {k.CgroupDriver, "systemd"},
		"rotateCertificates":       {k.RotateCertificates, true},
		"serverTLSBootstrap":       {k.ServerTLSBootstrap, true},
	} {
		if !cmp.Equal(pair[0], pair[1]) {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
}

// The node has a range for its pods, and runs one.
func (j *joinedNode) testPod(t *testing.T) {
	j.soon(t, "worker-1 has a range and its address", func() bool {
		return regexp.MustCompile(`(?m)^worker-1 +10\.244\.\d+\.0/24 +` + regexp.QuoteMeta(j.node.address) + `$`).MatchString(
			j.shell.mustRun("ranges", j.shell.translated(t, "kubectl get nodes -o custom-columns")))
	})
	j.addPod(t, j.namespace, j.node.pod("hello", patient))
	if logs := j.run(t, "kubectl", "-n", j.namespace, "logs", "hello"); logs != "hello\n" {
		t.Errorf("logs: %q", logs)
	}
	n, err := j.kube.CoreV1().Nodes().Get(t.Context(), "worker-1", metav1.GetOptions{})
	must(t, err)
	if n.Status.NodeInfo.KubeletVersion != j.kubeletRelease {
		t.Errorf("the node is of %s, want %s", n.Status.NodeInfo.KubeletVersion, j.kubeletRelease)
	}
}
