package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"
)

// realNode is a node with the kubelet of Kubernetes. Its containers are processes, by the
// runtime in testdata/cluster.
type realNode struct {
	*component
	name   string // its address too
	port   int32
	static string // directory of the manifests of static pods
}

// kubeletTaint keeps pods off the kubelet's node that are not meant for it.
var kubeletTaint = corev1.Taint{Key: "example.com/kubelet", Effect: corev1.TaintEffectNoSchedule}

// kubeletConfig takes address and port, the authority of clients and the directory of static
// pods.
// Times are short, so that changes are noticed within a test. The machine may lack what nodes
// have (cgroups of its own, space on its disk, iptables); containers don't need it here.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
port: %d
healthzPort: 0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %q}
authorization: {mode: Webhook}
serverTLSBootstrap: true
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
failSwapOn: false
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
maxOpenFiles: 1024
oomScoreAdj: 0
resolvConf: ""
volumePluginDir: /var/lib/kubelet/volumeplugins
`

// addKubelet starts a node whose name is its address, an IP.
func (c *realCluster) addKubelet(t *testing.T) *realNode {
	t.Helper()
	address := freeAddress(t)
	name := address.IP.String()
	n := &realNode{name: name, port: int32(address.Port), static: filepath.Join(c.dir, "static")}
	must(t, os.Mkdir(n.static, 0o700))
	config := filepath.Join(c.dir, "kubelet.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, kubeletConfig, name, address.Port, filepath.Join(c.plinth.dir, "pki", "ca.crt"), n.static), 0o600))
	script, err := filepath.Abs(filepath.Join("testdata", "cluster", "node.sh"))
	must(t, err)
	n.component = c.startProgram(t, script, c.bin, "--hostname-override="+name, "--config="+config, "-v=6",
		"--kubeconfig="+c.kubeconfigOf(t, "system:node:"+name, "system:nodes", "system:masters"))
	return n
}

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
	pki := filepath.Join(c.plinth.dir, "pki")
	ca, err := tls.LoadX509KeyPair(filepath.Join(pki, "ca.crt"), filepath.Join(pki, "ca.key"))
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(mathrand.Int64()), Subject: pkix.Name{CommonName: user, Organization: groups},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.Leaf, key.Public(), ca.PrivateKey)
	must(t, err)
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	must(t, err)
	config := clientcmdapi.NewConfig()
	config.Clusters["plinth"] = &clientcmdapi.Cluster{Server: c.plinth.url, CertificateAuthority: filepath.Join(pki, "ca.crt")}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), ClientKeyData: keyPEM,
	}
	config.Contexts["plinth"] = &clientcmdapi.Context{Cluster: "plinth", AuthInfo: "user"}
	config.CurrentContext = "plinth"
	name := filepath.Join(c.dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
	must(t, clientcmd.WriteToFile(*config, name))
	return name
}

// restart ends plinth and starts it where it was, with more flags.
func (c *realCluster) restart(t *testing.T, flags ...string) {
	t.Helper()
	must(t, c.plinth.stop())
	flags = append(flags, "--listen="+strings.TrimPrefix(c.plinth.url, "https://"))
	c.plinth = serveFor(t, c.plinth.dir, c.dsn, append(flags, clusterFlags...)...)
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

var answered = regexp.MustCompile(`"Response" verb="(\w+)" url="https://[^/]*([^"?]*)[^"]*" status="([45]\d\d)`)

// refused are the requests of the kubelet that plinth answered with an error. Not found and
// conflict are left out: a kubelet looks for what it is about to make, and deletes what may
// have gone already.
func (n *realNode) refused() (requests []string) {
	text, _ := os.ReadFile(n.log)
	for _, found := range answered.FindAllStringSubmatch(string(text), -1) {
		if status := found[3]; status != "404" && status != "409" {
			requests = append(requests, strings.Join(found[1:], " "))
		}
	}
	return requests
}
