package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// patient is a script that says when it is asked to end, and does after a second.
const patient = `trap 'echo bye; sleep 1; exit 0' TERM; echo hello; while :; do sleep 0.1; done`

// The kubelet of Kubernetes keeps its node, runs and ends pods, and serves its own API.
func testKubelet(t *testing.T, c *realCluster, namespace string) {
	for _, s := range []struct {
		name string
		test func(*testing.T, *realCluster, string)
	}{
		{"node", testKubeletNode}, {"certificate", testKubeletCertificate},
		{"pod", testKubeletPod}, {"connections", testKubeletConnections}, {"access", testKubeletAccess},
		{"rights of the node", testNodeRights}, {"rights of a pod", testPodRights},
		{"image", testKubeletImage}, {"ephemeral", testKubeletEphemeral}, {"end", testKubeletEnd},
		{"deletion", testKubeletDeletion}, {"force", testKubeletForce}, {"static", testKubeletStatic}, {"drain", testKubeletDrain},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, c, namespace) }) {
			t.FailNow()
		}
	}
}

// The kubelet has registered its node, and keeps its status and its lease.
func testKubeletNode(t *testing.T, c *realCluster, _ string) {
	var first *corev1.Node
	heartbeat := func(n *corev1.Node) metav1.Time {
		return n.Status.Conditions[slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })].LastHeartbeatTime
	}
	c.soon(t, "the node is ready, and stays so", func() bool {
		n, err := c.kube.CoreV1().Nodes().Get(t.Context(), c.kubelet.name, metav1.GetOptions{})
		if err != nil || !isReady(n) {
			return false
		}
		if first == nil {
			first = n
		}
		return heartbeat(first).Time.Before(heartbeat(n).Time)
	})
	s := first.Status
	if s.NodeInfo.KubeletVersion != c.kubeletRelease || s.DaemonEndpoints.KubeletEndpoint.Port != c.kubelet.port || s.Addresses[0].Address != c.kubelet.name ||
		s.Capacity.Cpu().IsZero() || s.Capacity.Memory().IsZero() || !slices.Contains(first.Spec.Taints, kubeletTaint) {
		t.Errorf("node: %+v", first)
	}
	var renewed *metav1.MicroTime
	c.soon(t, "the lease is renewed", func() bool {
		lease, err := c.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), c.kubelet.name, metav1.GetOptions{})
		must(t, err)
		if *lease.Spec.HolderIdentity != c.kubelet.name {
			t.Fatalf("the lease is %s's", *lease.Spec.HolderIdentity)
		}
		if renewed == nil {
			renewed = lease.Spec.RenewTime
		}
		return renewed.Before(lease.Spec.RenewTime)
	})
	_, err := c.kube.StorageV1().CSINodes().Get(t.Context(), c.kubelet.name, metav1.GetOptions{})
	must(t, err)
}

// The kubelet serves with a certificate that it has asked for.
func testKubeletCertificate(t *testing.T, c *realCluster, _ string) {
	name := c.request(t, certificatesv1.KubeletServingSignerName, "system:node:"+c.kubelet.name).Name
	c.run(t, "kubectl", "certificate", "approve", name)
	c.soon(t, "the kubelet has its certificate", func() bool {
		r, err := c.kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		return len(r.Status.Certificate) > 0
	})
	c.soon(t, "the kubelet serves with it", func() bool {
		status, body := c.askKubelet(t, "/healthz", "")
		return status == http.StatusOK && body == "ok"
	})
}

const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// withVolumes gives a pod a ConfigMap and a Secret. Admission adds access to the API.
func withVolumes(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "secret"}}},
	}
	main := &p.Spec.Containers[0]
	main.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/run/config"}, {Name: "secret", MountPath: "/run/secret"}}
	main.Env = []corev1.EnvVar{{Name: "COLOUR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, Key: "colour",
	}}}}
}

// A pod gets everything that it is made of, and its status says so.
func testKubeletPod(t *testing.T, c *realCluster, namespace string) {
	c.run(t, "kubectl", "-n", namespace, "create", "configmap", "config", "--from-literal=colour=red")
	c.run(t, "kubectl", "-n", namespace, "create", "secret", "generic", "secret", "--from-literal=word=open")
	p := c.addPod(t, namespace, c.kubelet.pod("web", `echo "$COLOUR"; cat /run/secret/word; echo; `+patient, withVolumes, func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "example.com/one", Command: []string{"true"}}}
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/run/secret/word"}}}}
	}))
	for _, want := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodScheduled} {
		if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == want && c.Status == corev1.ConditionTrue
		}) {
			t.Errorf("no condition %s: %+v", want, p.Status.Conditions)
		}
	}
	main := p.Status.ContainerStatuses[0]
	if p.Status.Phase != corev1.PodRunning || p.Spec.NodeName != c.kubelet.name || p.Status.HostIP != c.kubelet.name || !strings.HasPrefix(p.Status.PodIP, "10.88.") ||
		!main.Ready || main.State.Running == nil || !strings.HasPrefix(main.ContainerID, "process://") ||
		p.Status.InitContainerStatuses[0].State.Terminated == nil || p.Status.StartTime == nil {
		t.Errorf("status: %+v", p.Status)
	}
	if logs := c.run(t, "kubectl", "-n", namespace, "logs", "web", "-c", "main"); logs != "red\nopen\nhello\n" {
		t.Errorf("logs: %q", logs)
	}
	c.testToken(t, namespace, p)
	c.run(t, "kubectl", "-n", namespace, "patch", "configmap", "config", "--type=merge", `--patch={"data":{"colour":"blue"}}`)
	c.soon(t, "the volume has the change", func() bool {
		return c.run(t, "kubectl", "-n", namespace, "exec", "web", "-c", "main", "--", "cat", "/run/config/colour") == "blue"
	})
	c.testKubeletEvents(t, namespace, p)
}

// testToken reads the pod's token in the pod and asks what it is worth.
func (c *realCluster) testToken(t *testing.T, namespace string, p *corev1.Pod) {
	t.Helper()
	read := func(name string) string {
		return c.run(t, "kubectl", "-n", namespace, "exec", p.Name, "-c", "main", "--", "cat", accountDir+"/"+name)
	}
	if got := read("namespace"); got != namespace {
		t.Errorf("namespace in the pod: %q", got)
	}
	if ca, err := os.ReadFile(filepath.Join(c.plinth.dir, "pki", "ca.crt")); err != nil || read("ca.crt") != string(ca) {
		t.Errorf("the authority in the pod is another (%v)", err)
	}
	review, err := c.kube.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: read("token")},
	}, metav1.CreateOptions{})
	must(t, err)
	node, err := c.kube.CoreV1().Nodes().Get(t.Context(), c.kubelet.name, metav1.GetOptions{})
	must(t, err)
	if s := review.Status; !s.Authenticated || s.User.Username != "system:serviceaccount:"+namespace+":default" {
		t.Fatalf("review of the pod's token: %+v", s)
	}
	for key, want := range map[string]string{
		"pod-name": p.Name, "pod-uid": string(p.UID), "node-name": node.Name, "node-uid": string(node.UID),
	} {
		if got := review.Status.User.Extra["authentication.kubernetes.io/"+key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s of the token is %q, want %s", key, got, want)
		}
	}
}

// testKubeletEvents waits for what the scheduler and the kubelet have to say about a pod.
func (c *realCluster) testKubeletEvents(t *testing.T, namespace string, p *corev1.Pod) {
	t.Helper()
	c.soon(t, "the events of the pod are there", func() bool {
		list, err := c.kube.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(p.UID)})
		must(t, err)
		return !slices.ContainsFunc([]string{"Scheduled", "Pulled", "Created", "Started"}, func(reason string) bool {
			return !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == reason })
		})
	})
}

// Clients get through to the kubelet and into containers.
func testKubeletConnections(t *testing.T, c *realCluster, namespace string) {
	echo := c.command(t, "kubectl", "-n", namespace, "exec", "-i", "web", "--", "cat")
	echo.Stdin = strings.NewReader("over and back")
	if out, err := echo.Output(); err != nil || string(out) != "over and back" {
		t.Errorf("exec with input: %q, %v", out, err)
	}
	var exit *exec.ExitError
	if err := c.command(t, "kubectl", "-n", namespace, "exec", "web", "--", "sh", "-c", "exit 7").Run(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exec of what ends with 7: %v", err)
	}
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "asked for %s", r.URL.Path) }))
	defer there.Close()
	address, err := url.Parse(there.URL)
	must(t, err)
	forward := c.command(t, "kubectl", "-n", namespace, "port-forward", "--address=127.0.0.1", "web", ":"+address.Port())
	if body, err := getForwarded(forward, "/here"); err != nil || body != "asked for /here" {
		t.Errorf("through the forwarded port: %q, %v", body, err)
	}
	for path, want := range map[string]string{"healthz": "ok", "pods": `"name":"web"`, "configz": `"serverTLSBootstrap":true`} {
		if net.ParseIP(c.kubelet.name).IsLoopback() {
			want = "address not allowed"
		}
		out, _ := c.command(t, "kubectl", "get", "--raw", "/api/v1/nodes/"+c.kubelet.name+"/proxy/"+path).CombinedOutput()
		if !strings.Contains(string(out), want) {
			t.Errorf("%s of the kubelet: %s", path, out)
		}
	}
}

// The kubelet asks plinth who its own clients are and what they may.
func testKubeletAccess(t *testing.T, c *realCluster, namespace string) {
	token := strings.TrimSpace(c.run(t, "kubectl", "-n", namespace, "create", "token", "default"))
	for name, test := range map[string]struct {
		token  string
		status int
		body   string
	}{
		"a service account": {token, http.StatusForbidden, "user=system:serviceaccount:" + namespace + ":default, verb=get, resource=nodes"},
		"nobody":            {"nonsense", http.StatusUnauthorized, "Unauthorized"},
		"the admin":         {"", http.StatusOK, `"kind":"PodList"`},
	} {
		if status, body := c.askKubelet(t, "/pods", test.token); status != test.status || !strings.Contains(body, test.body) {
			t.Errorf("%s gets %d: %.200s", name, status, body)
		}
	}
}

// A node reads the Secrets of its own pods, and no others.
func testNodeRights(t *testing.T, c *realCluster, namespace string) {
	c.run(t, "kubectl", "-n", namespace, "create", "secret", "generic", "unused", "--from-literal=word=hidden")
	own := c.as(t, "system:node:"+c.kubelet.name, "system:nodes")
	other := c.as(t, "system:node:a-1", "system:nodes")
	if s, err := own.CoreV1().Secrets(namespace).Get(t.Context(), "secret", metav1.GetOptions{}); err != nil || string(s.Data["word"]) != "open" {
		t.Errorf("the Secret of a pod of the node: %v, %v", s, err)
	}
	expectForbidden(t, map[string]func() error{
		"a Secret of a pod of another node": func() error {
			_, err := other.CoreV1().Secrets(namespace).Get(t.Context(), "secret", metav1.GetOptions{})
			return err
		},
		"a Secret of no pod": func() error {
			_, err := own.CoreV1().Secrets(namespace).Get(t.Context(), "unused", metav1.GetOptions{})
			return err
		},
		"all Secrets": func() error {
			_, err := own.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"a token of an account of another node's pod": func() error {
			_, err := other.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			return err
		},
		"another node": func() error {
			_, err := own.CoreV1().Nodes().Patch(t.Context(), "a-1", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
			return err
		},
		"a label of its own that is reserved": func() error {
			_, err := own.CoreV1().Nodes().Patch(t.Context(), c.kubelet.name, types.MergePatchType, []byte(`{"metadata":{"labels":{"node-restriction.kubernetes.io/x":"y"}}}`), metav1.PatchOptions{})
			return err
		},
	})
}

// A pod has the rights of its account: this one lists pods by its token and is refused Secrets.
func testPodRights(t *testing.T, c *realCluster, namespace string) {
	kubectl := c.command(t, "kubectl").Path
	c.run(t, "kubectl", "-n", namespace, "create", "serviceaccount", "lister")
	c.run(t, "kubectl", "-n", namespace, "create", "role", "lister", "--verb=list", "--resource=pods")
	c.run(t, "kubectl", "-n", namespace, "create", "rolebinding", "lister", "--role=lister", "--serviceaccount="+namespace+":lister")
	p := c.addPod(t, namespace, c.kubelet.pod("lister", patient, func(p *corev1.Pod) { p.Spec.ServiceAccountName = "lister" }))
	ask := func(resource string) string {
		script := fmt.Sprintf(`HOME=/nonexistent exec %s --server=%s --certificate-authority=%[3]s/ca.crt --token="$(cat %[3]s/token)" --namespace="$(cat %[3]s/namespace)" get %s -o name 2>&1`,
			kubectl, c.plinth.url, accountDir, resource)
		out, _ := c.command(t, "kubectl", "-n", namespace, "exec", p.Name, "-c", "main", "--", "sh", "-c", script).Output()
		return string(out)
	}
	if pods := ask("pods"); !strings.Contains(pods, "pod/lister\n") || !strings.Contains(pods, "pod/web\n") {
		t.Errorf("the pod sees the pods %q", pods)
	}
	for _, resource := range []string{"secrets", "configmaps", "pods/web", "nodes", "pods --all-namespaces"} {
		want := fmt.Sprintf(`User "system:serviceaccount:%s:lister" cannot `, namespace)
		if got := ask(resource); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %s", resource, got, want)
		}
	}
}

// as returns clients with a new certificate.
func (c *realCluster) as(t *testing.T, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	return clients(t, c.kubeconfigOf(t, user, groups...))
}

// askKubelet gets a path of the kubelet itself.
func (c *realCluster) askKubelet(t *testing.T, path, token string) (status int, body string) {
	t.Helper()
	return c.ask(t, fmt.Sprintf("https://%s:%d%s", c.kubelet.address, c.kubelet.port, path), token)
}

// ask gets a URL of a component, with a token, or as the admin if there is none. The status is 0
// if the component does not answer.
func (c *realCluster) ask(t *testing.T, address, token string) (status int, body string) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if token == "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(c.plinth.dir, "pki", "admin.crt"), filepath.Join(c.plinth.dir, "pki", "admin.key"))
		must(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	must(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(text)
}

// A new image is a new container in the same pod.
func testKubeletImage(t *testing.T, c *realCluster, namespace string) {
	before := c.awaitPod(t, namespace, "web", "is ready", podIsReady)
	c.run(t, "kubectl", "-n", namespace, "set", "image", "pod/web", "main=example.com/two:1")
	after := c.awaitPod(t, namespace, "web", "runs the other image", func(p *corev1.Pod) bool {
		return podIsReady(p) && p.Status.ContainerStatuses[0].Image == "example.com/two:1"
	})
	was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
	if is.RestartCount != 1 || is.ContainerID == was.ContainerID || after.UID != before.UID ||
		is.LastTerminationState.Terminated == nil || is.LastTerminationState.Terminated.ContainerID != was.ContainerID {
		t.Errorf("status: %+v", is)
	}
	if logs := c.run(t, "kubectl", "-n", namespace, "logs", "web", "-c", "main", "--previous"); !strings.HasSuffix(logs, "hello\nbye\n") {
		t.Errorf("logs of the container before: %q", logs)
	}
}

// An ephemeral container joins a pod that runs.
func testKubeletEphemeral(t *testing.T, c *realCluster, namespace string) {
	p := c.awaitPod(t, namespace, "web", "is ready", podIsReady)
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debugger", Image: "example.com/one", Command: []string{"sh", "-c", "echo found it"},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}}}
	_, err := c.kube.CoreV1().Pods(namespace).UpdateEphemeralContainers(t.Context(), p.Name, p, metav1.UpdateOptions{})
	must(t, err)
	c.awaitPod(t, namespace, "web", "has had its ephemeral container", func(p *corev1.Pod) bool {
		s := p.Status.EphemeralContainerStatuses
		return len(s) == 1 && s[0].State.Terminated != nil && s[0].State.Terminated.ExitCode == 0
	})
	if logs := c.run(t, "kubectl", "-n", namespace, "logs", "web", "-c", "debugger"); logs != "found it\n" {
		t.Errorf("its logs: %q", logs)
	}
}

// Pods that end have their phase, and exit codes.
func testKubeletEnd(t *testing.T, c *realCluster, namespace string) {
	never := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
	for _, test := range []struct {
		name, script string
		phase        corev1.PodPhase
		code         int32
	}{{"done", "exit 0", corev1.PodSucceeded, 0}, {"failed", "exit 3", corev1.PodFailed, 3}} {
		_, err := c.kube.CoreV1().Pods(namespace).Create(t.Context(), c.kubelet.pod(test.name, test.script, never), metav1.CreateOptions{})
		must(t, err)
		p := c.awaitPod(t, namespace, test.name, "is over", func(p *corev1.Pod) bool { return p.Status.Phase == test.phase })
		if s := p.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != test.code {
			t.Errorf("%s: %+v", test.name, p.Status.ContainerStatuses)
		}
	}
}

// A pod that is deleted stays until its containers have ended: the kubelet deletes it then.
func testKubeletDeletion(t *testing.T, c *realCluster, namespace string) {
	p := c.addPod(t, namespace, c.kubelet.pod("slow", patient))
	w, err := c.kube.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=slow", ResourceVersion: p.ResourceVersion})
	must(t, err)
	defer w.Stop()
	logs := c.command(t, "kubectl", "-n", namespace, "logs", "-f", "slow")
	var stderr strings.Builder
	logs.Stderr = &stderr
	stdout, err := logs.StdoutPipe()
	must(t, err)
	must(t, logs.Start())
	followed := bufio.NewReader(stdout)
	first, _ := followed.ReadString('\n') // it follows from here on; if it has failed, that is seen below
	must(t, c.kube.CoreV1().Pods(namespace).Delete(t.Context(), "slow", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}}))
	if last := lastOf(t, w, p); last.DeletionTimestamp == nil || last.Status.ContainerStatuses[0].State.Terminated == nil || last.Status.ContainerStatuses[0].State.Terminated.ExitCode != 0 {
		t.Errorf("the pod's last state: %+v", last)
	}
	rest, err := io.ReadAll(followed)
	must(t, err)
	if err := logs.Wait(); err != nil || first+string(rest) != "hello\nbye\n" {
		t.Errorf("logs that were followed: %q, %v: %s", first+string(rest), err, stderr.String())
	}
}

// lastOf reads events until the pod is gone, which it must first be marked for.
func lastOf(t *testing.T, w watch.Interface, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	marked := false
	timeout := time.After(clusterPatience)
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch ended")
			}
			last := event.Object.(*corev1.Pod)
			if last.UID != p.UID {
				t.Fatalf("event of another pod: %+v", event)
			}
			switch {
			case event.Type == watch.Modified && last.DeletionTimestamp != nil && !marked:
				marked = true
				if *last.DeletionGracePeriodSeconds != 60 {
					t.Errorf("grace: %d s", *last.DeletionGracePeriodSeconds)
				}
			case event.Type == watch.Deleted:
				if !marked {
					t.Error("the pod was deleted before it was marked")
				}
				return last
			}
		case <-timeout:
			t.Fatal("the pod is not deleted")
		}
	}
}

// A pod that is deleted by force is gone at once, and what the kubelet still does about it
// does no harm to another of the same name.
func testKubeletForce(t *testing.T, c *realCluster, namespace string) {
	first := c.addPod(t, namespace, c.kubelet.pod("again", patient))
	c.run(t, "kubectl", "-n", namespace, "delete", "pod", "again", "--force", "--grace-period=0")
	second := c.addPod(t, namespace, c.kubelet.pod("again", patient))
	c.soon(t, "the kubelet has forgotten the first", func() bool {
		status, pods := c.askKubelet(t, "/pods", "")
		return status == http.StatusOK && !strings.Contains(pods, string(first.UID))
	})
	if p := c.awaitPod(t, namespace, "again", "is ready", podIsReady); p.UID != second.UID || p.DeletionTimestamp != nil {
		t.Errorf("the second pod is %+v, was %s", p.ObjectMeta, second.UID)
	}
}

// A pod that the kubelet has by itself has a mirror in the API.
func testKubeletStatic(t *testing.T, c *realCluster, namespace string) {
	manifest := filepath.Join(c.kubelet.static, "static.yaml")
	must(t, os.WriteFile(manifest, fmt.Appendf(nil, "apiVersion: v1\nkind: Pod\nmetadata: {name: static, namespace: %s}\nspec: {containers: [{name: main, image: example.com/one}]}\n", namespace), 0o600))
	name := "static-" + c.kubelet.name
	first := c.awaitPod(t, namespace, name, "is ready", podIsReady)
	if first.Annotations[corev1.MirrorPodAnnotationKey] == "" || len(first.OwnerReferences) != 1 || first.OwnerReferences[0].Kind != "Node" {
		t.Errorf("mirror: %+v", first.ObjectMeta)
	}
	must(t, c.kube.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	c.awaitPod(t, namespace, name, "is there again", func(p *corev1.Pod) bool { return p.UID != first.UID && podIsReady(p) })
	must(t, os.Remove(manifest))
	c.soon(t, "the mirror is gone", func() bool {
		_, err := c.kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// A node that is drained has no pods left.
func testKubeletDrain(t *testing.T, c *realCluster, namespace string) {
	c.addDeployment(t, namespace, 2, func(spec *corev1.PodSpec) {
		p := c.kubelet.pod("web", patient)
		spec.NodeSelector, spec.Tolerations, spec.Containers = p.Spec.NodeSelector, p.Spec.Tolerations, p.Spec.Containers
	})
	c.rolledOut(t, namespace)
	c.run(t, "kubectl", "drain", c.kubelet.name, "--force", "--timeout="+clusterPatience.String())
	list, err := c.kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + c.kubelet.name})
	must(t, err)
	if len(list.Items) > 0 {
		t.Errorf("%d pods are on the drained node, one is %s", len(list.Items), list.Items[0].Name)
	}
	c.run(t, "kubectl", "uncordon", c.kubelet.name)
	c.rolledOut(t, namespace)
}

// The kubelet goes on when plinth was away. Then plinth verifies the kubelet's certificate,
// which it is the authority of.
func testKubeletRestart(t *testing.T, c *realCluster) {
	const namespace = "restart"
	c.addNamespace(t, namespace)
	c.addPod(t, namespace, c.kubelet.pod("before", patient))
	before := c.awaitPod(t, namespace, "before", "is ready", podIsReady)
	c.restart(t, "--kubelet-certificate-authority="+filepath.Join(c.plinth.dir, "pki", "ca.crt"))
	c.addPod(t, namespace, c.kubelet.pod("after", patient))
	if logs := c.run(t, "kubectl", "-n", namespace, "logs", "after"); logs != "hello\n" {
		t.Errorf("logs: %q", logs)
	}
	after := c.awaitPod(t, namespace, "before", "is ready", podIsReady)
	if after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("its container did not go on: %+v", after.Status.ContainerStatuses[0])
	}
	c.run(t, "kubectl", "-n", namespace, "delete", "pod", "before", "after", "--timeout="+clusterPatience.String())
}
