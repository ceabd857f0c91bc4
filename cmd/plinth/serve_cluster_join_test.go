package main

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// joining is a node that joins with a bootstrap token, by the commands of docs/cluster.md.
type joining struct {
	*realCluster
	shell     *docShell
	namespace string
	token     string // ID.SECRET
	node      *realNode
}

// A kubelet joins with a bootstrap token, which then ends.
func testNodeJoin(t *testing.T, c *realCluster, namespace string) {
	shell := newDocShell(t, fmt.Sprintf("ln -s %q cluster; export KUBECONFIG=cluster/kubeconfig", c.plinth.dir),
		"plinth.example.com:6443", strings.TrimPrefix(c.plinth.url, "https://"))
	j := &joining{realCluster: c, shell: shell, namespace: namespace}
	j.makeToken(t)
	j.start(t)
	for _, s := range []struct {
		name string
		test func(*joining, *testing.T)
	}{
		{"token", (*joining).testToken}, {"certificate", (*joining).testCertificate}, {"serving", (*joining).testServing},
		{"secrets", (*joining).testSecrets}, {"revoked", (*joining).testRevoked}, {"expired", (*joining).testExpired},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(j, t) }) {
			t.FailNow()
		}
	}
}

func (j *joining) makeToken(t *testing.T) {
	t.Helper()
	j.shell.playDocumented(t, "id=$(openssl")
	j.token = j.shell.mustRun("token", `echo -n "$id.$secret"`)
}

func (j *joining) tokenID() string { return strings.Split(j.token, ".")[0] }

func (j *joining) start(t *testing.T) {
	t.Helper()
	j.node = j.realCluster.node(t, j.shell, "node-1")
	j.node.copyTo(t, "bootstrap.kubeconfig", "/etc/kubernetes/bootstrap.kubeconfig")
	j.startKubelet(t, j.node, j.shell.documented(t, kubeletCommand).text)
	j.soon(t, "node-1 is ready", func() bool {
		n, err := j.kube.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
		return err == nil && isReady(n)
	})
}

// bootstrapper returns clients with the token.
func (j *joining) bootstrapper(t *testing.T) kubernetes.Interface {
	t.Helper()
	return clients(t, filepath.Join(j.shell.home(), "bootstrap.kubeconfig"))
}

// nodeClients returns clients with the credentials that the kubelet has got.
func (j *joining) nodeClients(t *testing.T) kubernetes.Interface {
	t.Helper()
	return clients(t, j.shell.path("/etc/kubernetes/kubelet.kubeconfig"))
}

// The token can request a certificate and nothing else.
func (j *joining) testToken(t *testing.T) {
	client := j.bootstrapper(t)
	expectUser(t, client, "system:bootstrap:"+j.tokenID(), "system:bootstrappers")
	requests := client.CertificatesV1().CertificateSigningRequests()
	_, err := requests.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	expectForbidden(t, map[string]func() error{
		"its own Secret": func() error {
			_, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-"+j.tokenID(), metav1.GetOptions{})
			return err
		},
		"all Secrets": func() error {
			_, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"nodes": func() error {
			_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
			return err
		},
		"the node": func() error {
			_, err := client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
			return err
		},
		"pods": func() error {
			_, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"approval": func() error {
			_, err := requests.UpdateApproval(t.Context(), "any", &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "any"}}, metav1.UpdateOptions{})
			return err
		},
	})
}

// The controller manager has signed the node's certificate, which the kubelet uses from then on.
func (j *joining) testCertificate(t *testing.T) {
	j.autoApproved(t, "system:bootstrap:"+j.tokenID())
	subject := j.currentCertificate(t, j.node).Subject
	want := pkix.Name{CommonName: "system:node:node-1", Organization: []string{"system:nodes"}}
	if subject.String() != want.String() {
		t.Errorf("the certificate is %s's, want %s", subject, want)
	}
	expectUser(t, j.nodeClients(t), "system:node:node-1", "system:nodes")
	// The other kubelet has replaced its certificate as system:node:NAME.
	j.autoApproved(t, "system:node:"+j.realCluster.kubelet.name)
}

// The admin approves the kubelet's serving certificate, as in docs/cluster.md.
func (j *joining) testServing(t *testing.T) {
	r := j.request(t, certificatesv1.KubeletServingSignerName, "system:node:node-1")
	j.shell.playDocumented(t, "kubectl get csr")
	j.shell.mustRun("approve", strings.ReplaceAll(j.shell.documented(t, "kubectl certificate approve").text, "csr-xxxxx", r.Name))
	j.shell.playDocumented(t, "kubectl get node node-1")
	address := net.JoinHostPort(j.node.address, strconv.Itoa(int(j.node.port)))
	j.soon(t, "the kubelet serves with a certificate of plinth's authority", func() bool {
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: j.authority(t)})
		if err != nil {
			return false
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName == "system:node:node-1"
	})
}

// withSecret gives a pod a Secret.
func withSecret(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "secret", MountPath: "/run/secret"}}
	}
}

// The node runs a pod with a Secret. It reads this Secret and no other.
func (j *joining) testSecrets(t *testing.T) {
	for _, name := range []string{"mine", "theirs"} {
		j.run(t, "kubectl", "-n", j.namespace, "create", "secret", "generic", name, "--from-literal=word="+name)
	}
	j.addPod(t, j.namespace, j.node.pod("mine", "cat /run/secret/word; "+patient, withSecret("mine")))
	if logs := j.run(t, "kubectl", "-n", j.namespace, "logs", "mine"); logs != "minehello\n" {
		t.Errorf("logs: %q", logs)
	}
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: podTemplate("theirs").Spec}
	theirs.Spec.NodeName = "a-1"
	withSecret("theirs")(theirs)
	j.addPod(t, j.namespace, theirs)
	read := func(client kubernetes.Interface, name string) func() error {
		return func() error {
			_, err := client.CoreV1().Secrets(j.namespace).Get(t.Context(), name, metav1.GetOptions{})
			return err
		}
	}
	node, other := j.nodeClients(t), j.as(t, "system:node:a-1", "system:nodes")
	must(t, read(node, "mine")())
	must(t, read(other, "theirs")())
	expectForbidden(t, map[string]func() error{
		"a Secret of another node":          read(node, "theirs"),
		"its Secret, read by another node":  read(other, "mine"),
		"a Secret that is not there":        read(node, "none"),
		"a list of one of another node":     j.list(t, node, "theirs"),
		"a list of all in the namespace":    j.list(t, node, ""),
		"a watch of one of another node":    j.watch(t, node, "theirs"),
		"a change of a Secret of its own":   j.patch(t, node, "mine"),
		"the Secret of its bootstrap token": func() error { return readToken(t, node, j.tokenID()) },
	})
}

func readToken(t *testing.T, client kubernetes.Interface, id string) error {
	_, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-"+id, metav1.GetOptions{})
	return err
}

func nameIs(name string) metav1.ListOptions {
	if name == "" {
		return metav1.ListOptions{}
	}
	return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
}

func (j *joining) list(t *testing.T, client kubernetes.Interface, name string) func() error {
	return func() error {
		_, err := client.CoreV1().Secrets(j.namespace).List(t.Context(), nameIs(name))
		return err
	}
}

func (j *joining) watch(t *testing.T, client kubernetes.Interface, name string) func() error {
	return func() error {
		w, err := client.CoreV1().Secrets(j.namespace).Watch(t.Context(), nameIs(name))
		if err == nil {
			w.Stop()
		}
		return err
	}
}

func (j *joining) patch(t *testing.T, client kubernetes.Interface, name string) func() error {
	return func() error {
		_, err := client.CoreV1().Secrets(j.namespace).Patch(t.Context(), name, "application/merge-patch+json", []byte(`{"data":null}`), metav1.PatchOptions{})
		return err
	}
}

// ended waits until plinth does not know the token any more.
func (j *joining) ended(t *testing.T) {
	t.Helper()
	client := j.bootstrapper(t)
	j.soon(t, "the token is refused", func() bool {
		_, err := whoIs(t, client)
		return apierrors.IsUnauthorized(err)
	})
	if _, err := client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("requests with a token that has ended: %v", err)
	}
}

// A token whose Secret is deleted ends. The node goes on.
func (j *joining) testRevoked(t *testing.T) {
	j.shell.playDocumented(t, "kubectl delete secret bootstrap-token")
	j.ended(t)
	revoked := time.Now()
	j.soon(t, "the kubelet renews its lease", func() bool {
		lease, err := j.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "node-1", metav1.GetOptions{})
		must(t, err)
		return lease.Spec.RenewTime.After(revoked)
	})
	expectUser(t, j.nodeClients(t), "system:node:node-1", "system:nodes")
}

// A token ends at its time, and the controller manager deletes its Secret.
func (j *joining) testExpired(t *testing.T) {
	j.makeToken(t)
	expectUser(t, j.bootstrapper(t), "system:bootstrap:"+j.tokenID(), "system:bootstrappers")
	past := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	j.run(t, "kubectl", "-n", "kube-system", "patch", "secret", "bootstrap-token-"+j.tokenID(), "--patch="+fmt.Sprintf(`{"stringData":{"expiration":%q}}`, past))
	j.ended(t)
	j.soon(t, "its Secret is deleted", func() bool {
		_, err := j.kube.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-"+j.tokenID(), metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
