package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	//lint:ignore SA1019 client-go's dialers are of this type
	"k8s.io/apimachinery/pkg/util/httpstream"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/kubelettest"
)

// Addresses that stand for a node and a pod; loopback ones are never connected to.
const nodeIP, nodeName, podIP = "10.9.9.9", "example.com", "10.1.2.3"

// reached is a server with a node, a pod on it and a Service that leads there.
type reached struct {
	*Server
	*kubernetes.Clientset
	kubelet *kubelettest.Kubelet
}

// startReached starts a server; c.Dial connects to what is not of the node.
func startReached(t *testing.T, c Config) *reached {
	var kubelet atomic.Pointer[kubelettest.Kubelet]
	elsewhere := c.Dial
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch host, port, _ := net.SplitHostPort(address); {
		case (host == nodeIP || host == nodeName) && port == "10250":
			address = kubelet.Load().Listener.Addr().String()
		case host == nodeIP, host == podIP:
			address = kubelet.Load().Pods.Listener.Addr().String()
		case elsewhere != nil:
			return elsewhere(ctx, network, address)
		default:
			return nil, fmt.Errorf("nobody is at %s", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	s := start(t, c)
	r := &reached{Server: s, Clientset: kubernetes.NewForConfigOrDie(s.RESTConfig()), kubelet: kubelettest.Start(t, s.pki.CA())}
	kubelet.Store(r.kubelet)
	r.fill(t)
	return r
}

func (r *reached) fill(t *testing.T) {
	t.Helper()
	ctx, core := t.Context(), r.CoreV1()
	_, err := core.Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP}}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	must(t, err)
	pod, err := core.Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{
			{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}},
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, podIP, []corev1.PodIP{{IP: podIP}}
	_, err = core.Pods("default").UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	must(t, err)
	ports := []corev1.ServicePort{{Name: "web", Port: 80}}
	_, err = core.Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: ports},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = r.DiscoveryV1().EndpointSlices("default").Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "s-1", Labels: map[string]string{discoveryv1.LabelServiceName: "s"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{podIP}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("web"), Port: new(int32(8080))}},
	}, metav1.CreateOptions{})
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stream is a client's exec or attach of the pod, by either protocol.
func (r *reached) stream(t *testing.T, protocol, sub string, options any) remotecommand.Executor {
	t.Helper()
	request := r.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name("p").SubResource(sub)
	switch o := options.(type) {
	case *corev1.PodExecOptions:
		request.VersionedParams(o, scheme.ParameterCodec)
	case *corev1.PodAttachOptions:
		request.VersionedParams(o, scheme.ParameterCodec)
	}
	var e remotecommand.Executor
	var err error
	if protocol == "SPDY" {
		e, err = remotecommand.NewSPDYExecutor(r.RESTConfig(), "POST", request.URL())
	} else {
		e, err = remotecommand.NewWebSocketExecutor(r.RESTConfig(), "GET", request.URL().String())
	}
	must(t, err)
	return e
}

var protocols = []string{"SPDY", "WebSocket"}

func TestExec(t *testing.T) {
	r := startReached(t, Config{})
	long := strings.Repeat("0123456789", 20_000)
	for _, tt := range []struct {
		name          string
		command       []string
		in, out, errs string
		code          int
	}{
		{"output", []string{"echo", "a", "b c"}, "", "a b c\n", "", 0},
		{"input", []string{"cat"}, long, long, "", 0},
		{"exit code", []string{"fail", "3"}, "", "", "failed as told\n", 3},
	} {
		for _, protocol := range protocols {
			t.Run(tt.name+" by "+protocol, func(t *testing.T) {
				e := r.stream(t, protocol, "exec", &corev1.PodExecOptions{Command: tt.command, Stdin: tt.in != "", Stdout: true, Stderr: true})
				var out, errs bytes.Buffer
				o := remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}
				if tt.in != "" {
					o.Stdin = strings.NewReader(tt.in)
				}
				err := e.StreamWithContext(t.Context(), o)
				var exit utilexec.CodeExitError
				if errors.As(err, &exit); exit.Code != tt.code || tt.code == 0 && err != nil {
					t.Errorf("error %v, want code %d", err, tt.code)
				}
				if out.String() != tt.out || errs.String() != tt.errs {
					t.Errorf("got %d bytes %.40q and %q", out.Len(), out.String(), errs.String())
				}
			})
		}
	}
	if n := r.kubelet.Requests("plinth-kubelet-client"); n != 6 {
		t.Errorf("the kubelet had %d requests", n)
	}
}

// oneSize is a terminal's size that never changes.
type oneSize struct{ sent bool }

func (s *oneSize) Next() *remotecommand.TerminalSize {
	if s.sent {
		return nil
	}
	s.sent = true
	return &remotecommand.TerminalSize{Width: 80, Height: 24}
}

func TestTerminal(t *testing.T) {
	r := startReached(t, Config{})
	for _, protocol := range protocols {
		t.Run("size by "+protocol, func(t *testing.T) {
			e := r.stream(t, protocol, "exec", &corev1.PodExecOptions{Command: []string{"size"}, Stdout: true, TTY: true})
			var out bytes.Buffer
			err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Tty: true, TerminalSizeQueue: &oneSize{}})
			if err != nil || out.String() != "80x24" {
				t.Errorf("got %q, %v", out.String(), err)
			}
		})
		t.Run("attach by "+protocol, func(t *testing.T) {
			e := r.stream(t, protocol, "attach", &corev1.PodAttachOptions{Container: "c", Stdin: true, Stdout: true})
			var out bytes.Buffer
			err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("typed"), Stdout: &out})
			if want := "this is c of p\ntyped"; err != nil || out.String() != want {
				t.Errorf("got %q, %v", out.String(), err)
			}
		})
	}
}

func TestPortForward(t *testing.T) {
	r := startReached(t, Config{})
	at := r.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name("p").SubResource("portforward").URL()
	tripper, upgrader, err := spdy.RoundTripperFor(r.RESTConfig())
	must(t, err)
	tunnel, err := portforward.NewSPDYOverWebsocketDialer(at, r.RESTConfig())
	must(t, err)
	for name, dialer := range map[string]httpstream.Dialer{
		"SPDY":      spdy.NewDialer(upgrader, &http.Client{Transport: tripper}, "POST", at),
		"WebSocket": tunnel,
	} {
		t.Run(name, func(t *testing.T) {
			ready, stop, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			f, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
			must(t, err)
			go func() { done <- f.ForwardPorts() }()
			select {
			case <-ready:
			case err := <-done:
				t.Fatal(err)
			}
			ports, err := f.GetPorts()
			must(t, err)
			for range 3 {
				resp, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/path?q=1", ports[0].Local), "text/plain", strings.NewReader("sent"))
				must(t, err)
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(body) != "POST /path?q=1 sent" {
					t.Errorf("got %q", body)
				}
			}
			close(stop)
			must(t, <-done)
		})
	}
}

func TestLogs(t *testing.T) {
	r := startReached(t, Config{})
	pods := r.CoreV1().Pods("default")
	body, err := pods.GetLogs("p", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || string(body) != "p: first\nc: second\n" {
		t.Errorf("got %q, %v", body, err)
	}
	follow, err := pods.GetLogs("p", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	must(t, err)
	lines := bufio.NewScanner(follow)
	read := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
	}
	read("p: first")
	read("c: second")
	r.kubelet.Log("third") // as it comes
	read("third")
	must(t, r.Close())
	if lines.Scan() {
		t.Errorf("got %q after the stop", lines.Text())
	}
}

func TestProxies(t *testing.T) {
	r := startReached(t, Config{})
	for _, tt := range []struct{ method, path, body, want string }{
		{"GET", "namespaces/default/pods/p/proxy", "", "GET / "},
		{"GET", "namespaces/default/pods/p/proxy/", "", "GET / "},
		{"GET", "namespaces/default/pods/http:p:9/proxy/a/b/?x=y&z", "", "GET /a/b/?x=y&z= "},
		{"POST", "namespaces/default/pods/p:8080/proxy/a", "body", "POST /a body"},
		{"PUT", "namespaces/default/services/s:80/proxy/a", "body", "PUT /a body"},
		{"PATCH", "namespaces/default/services/s:web/proxy/a", "body", "PATCH /a body"},
		{"DELETE", "namespaces/default/services/http:s:web/proxy/a/b", "", "DELETE /a/b "},
		{"GET", "nodes/n/proxy/pods?x=y", "", "GET /pods?x=y "},
		{"POST", "nodes/n:10250/proxy/run", "body", "POST /run body"},
		{"GET", "nodes/n:9100/proxy/metrics", "", "GET /metrics "},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			code, body := r.ask(t, tt.method, "/api/v1/"+tt.path, tt.body)
			if code != http.StatusOK || strings.Replace(body, "&z ", "&z= ", 1) != tt.want {
				t.Errorf("got %d %q, want %q", code, body, tt.want)
			}
		})
	}
}

// TestConnectMetrics looks at how connections are counted.
func TestConnectMetrics(t *testing.T) {
	r := startReached(t, Config{})
	r.ask(t, "GET", "/api/v1/namespaces/default/pods/p/proxy/", "")
	r.ask(t, "POST", "/api/v1/namespaces/default/pods/p/proxy/a", "")
	_, body := r.ask(t, "GET", "/metrics", "")
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `subresource="proxy"`) {
			if !strings.Contains(line, `verb="CONNECT"`) || !strings.HasSuffix(line, " 2\n") {
				t.Error(line)
			}
			return
		}
	}
	t.Error("they are not counted")
}

func (r *reached) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL()+path, strings.NewReader(body))
	must(t, err)
	resp, err := apitest.Admin(t, r.Server).Do(req)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(b)
}

// TestUnreachable compares with what kube-apiserver says of what it cannot connect to.
func TestUnreachable(t *testing.T) {
	r := startReached(t, Config{})
	ctx, core := t.Context(), r.CoreV1()
	for name, node := range map[string]string{"waiting": "", "lost": "gone", "bare": "bare", "down": "down"} {
		_, err := core.Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	for name, addresses := range map[string][]corev1.NodeAddress{
		"bare": nil, "down": {{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}, "local": {{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: addresses}}
		_, err := core.Nodes().Create(ctx, node, metav1.CreateOptions{})
		must(t, err)
	}
	for _, tt := range []struct {
		path   string
		code   int
		reason metav1.StatusReason
		text   string
	}{
		{"namespaces/default/pods/waiting/log", 204, "", ""},
		{"namespaces/default/pods/waiting/exec?command=x&stdout=1", 400, "BadRequest", "pod waiting does not have a host assigned"},
		{"namespaces/default/pods/waiting/proxy/", 400, "BadRequest", "address not allowed"},
		{"namespaces/default/pods/lost/log", 404, "NotFound", `pods "gone" not found`},
		{"namespaces/default/pods/bare/log", 500, "", "no preferred addresses found; known addresses: []"},
		{"namespaces/default/pods/down/log", 500, "", `Get "https://10.0.0.1:10250/containerLogs/default/down/c": nobody is at 10.0.0.1:10250`},
		{"namespaces/default/pods/p/log?container=other", 400, "BadRequest", "container other is not valid for pod p"},
		{"namespaces/default/pods/p/log?tailLines=-1", 422, "Invalid", `PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0`},
		{"namespaces/default/pods/none/exec?command=x", 404, "NotFound", `pods "none" not found`},
		{"namespaces/default/pods/p/exec?command=x&stdout=1", 400, "BadRequest", "Upgrade request required"},
		{"namespaces/default/pods/p/exec?dryRun=All", 400, "BadRequest", "dryRun is not supported"},
		{"namespaces/default/services/s:81/proxy/", 503, "ServiceUnavailable", `no service port 81 found for service "s"`},
		{"namespaces/default/services/none/proxy/", 503, "ServiceUnavailable", `no endpoints available for service "none"`},
		{"nodes/down/proxy/", 503, "ServiceUnavailable", "error trying to reach service: nobody is at 10.0.0.1:10250"},
		{"nodes/local/proxy/", 400, "BadRequest", "address not allowed"},
		{"nodes/none/proxy/", 404, "NotFound", `nodes "none" not found`},
		{"namespaces/default/pods/p:web/proxy/", 400, "BadRequest", `invalid pod request "p:web": write the port as a number`},
		{"namespaces/default/pods/https:p:-1/proxy/", 400, "BadRequest", `invalid pod request "https:p:-1": write the port as a number`},
		{"namespaces/default/pods/none:web/proxy/", 404, "NotFound", `pods "none" not found`},
		{"namespaces/default/services/s:other/proxy/", 503, "ServiceUnavailable", `no endpoints available for service "s"`},
		{"nodes/n:web/proxy/", 400, "BadRequest", `invalid node request "n:web": write the port as a number`},
	} {
		t.Run(tt.path, func(t *testing.T) {
			code, body := r.ask(t, "GET", "/api/v1/"+tt.path, "")
			var status metav1.Status
			if strings.HasPrefix(body, "{") {
				must(t, json.Unmarshal([]byte(body), &status))
				body = status.Message
			}
			if code != tt.code || body != tt.text || status.Reason != tt.reason {
				t.Errorf("got %d %s: %s", code, status.Reason, body)
			}
		})
	}
}

// TestStopWithConnections stops a server that has a connection into a pod.
func TestStopWithConnections(t *testing.T) {
	r := startReached(t, Config{})
	for _, protocol := range protocols {
		e := r.stream(t, protocol, "exec", &corev1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true})
		in, typed := io.Pipe()
		shown, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- e.StreamWithContext(context.Background(), remotecommand.StreamOptions{Stdin: in, Stdout: out})
		}()
		go typed.Write([]byte("x"))
		if _, err := shown.Read(make([]byte, 1)); err != nil { // it is open
			t.Fatal(err)
		}
		defer func() {
			<-ended // SPDY's client takes it for the end of the output, WebSocket's for an error
			typed.Close()
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// TestKubeletTrust is about the certificates on both sides.
func TestKubeletTrust(t *testing.T) {
	dir := t.TempDir()
	other := start(t, Config{DataDir: filepath.Join(dir, "other")})
	strangers := filepath.Join(dir, "strangers.crt")
	must(t, os.WriteFile(strangers, other.pki.CA(), 0o600))
	r := startReached(t, Config{KubeletCA: strangers})
	logs := func(o *corev1.PodLogOptions) (string, error) {
		b, err := r.CoreV1().Pods("default").GetLogs("p", o).DoRaw(t.Context())
		return string(b), err
	}
	if out, err := logs(&corev1.PodLogOptions{}); err == nil || !strings.Contains(out, "failed to verify certificate") {
		t.Errorf("a kubelet that a stranger signed: %q, %v", out, err)
	}
	if out, err := logs(&corev1.PodLogOptions{InsecureSkipTLSVerifyBackend: true}); err != nil || !strings.Contains(out, "first") {
		t.Errorf("unverified: %q, %v", out, err)
	}
	for name, c := range map[string]Config{
		"no key":    {KubeletCertificate: strangers},
		"no file":   {KubeletCertificate: strangers, KubeletKey: filepath.Join(dir, "none")},
		"authority": {KubeletCA: filepath.Join(dir, "none")},
		"address":   {KubeletAddressTypes: []string{"Phone"}},
		"admin":     {KubeletCertificate: filepath.Join(dir, "other", "pki", "admin.crt"), KubeletKey: filepath.Join(dir, "other", "pki", "admin.key")},
	} {
		c.Listen = "127.0.0.1:0"
		if err := New(c).Open(t.Context()); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKubeletFiles has a kubelet verify the certificate in files, and verifies its own.
func TestKubeletFiles(t *testing.T) {
	dir := t.TempDir()
	data, ca := filepath.Join(dir, "data"), filepath.Join(dir, "kubelets.crt")
	first := start(t, Config{DataDir: data})
	shown, key, err := first.pki.Client("caller-of-kubelets", []string{"system:masters"}, time.Hour)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "shown.crt"), shown, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "shown.key"), key, 0o600))
	must(t, first.Close())
	like := httptest.NewTLSServer(nil) // all have the same certificate, for example.com
	defer like.Close()
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: like.Certificate().Raw}), 0o600))
	r := startReached(t, Config{
		DataDir: data, KubeletCA: ca,
		KubeletCertificate: filepath.Join(dir, "shown.crt"), KubeletKey: filepath.Join(dir, "shown.key"),
	})
	node, err := r.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	must(t, err)
	node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: nodeName})
	_, err = r.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	must(t, err)
	if _, err := r.CoreV1().Pods("default").GetLogs("p", &corev1.PodLogOptions{}).DoRaw(t.Context()); err != nil {
		t.Error(err)
	}
	if n := r.kubelet.Requests("caller-of-kubelets"); n != 1 {
		t.Errorf("%d requests with the certificate in files", n)
	}
	for _, name := range []string{"caller-of-kubelets", "somebody"} { // the first is nobody here
		code, _, body := apitest.Do(t, clientAs(t, r.Server, name, "system:masters"), "GET", r.URL()+"/api/v1/secrets", "")
		if want := map[bool]int{true: 401, false: 200}[name != "somebody"]; code != want {
			t.Errorf("%s: %d, want %d: %s", name, code, want, body)
		}
	}
}

// TestDescribed looks at what OpenAPI says of what is no part of an object.
func TestDescribed(t *testing.T) {
	s := start(t, Config{})
	resp, err := apitest.Admin(t, s).Get(s.URL() + "/openapi/v3/api/v1")
	must(t, err)
	defer resp.Body.Close()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	must(t, json.NewDecoder(resp.Body).Decode(&doc))
	all := []string{"delete", "get", "head", "options", "patch", "post", "put"}
	pod := "/api/v1/namespaces/{namespace}/pods/{name}/"
	for path, want := range map[string][]string{
		pod + "attach": {"get", "post"}, pod + "binding": {"post"}, pod + "eviction": {"post"}, pod + "exec": {"get", "post"},
		pod + "log": {"get"}, pod + "portforward": {"get", "post"}, pod + "proxy": all, pod + "proxy/{path}": all,
		"/api/v1/nodes/{name}/proxy/{path}": all, "/api/v1/namespaces/{namespace}/services/{name}/proxy": all,
		"/api/v1/namespaces/{namespace}/bindings": {"post"},
	} {
		operations := doc.Paths[path]
		delete(operations, "parameters")
		if got := slices.Sorted(maps.Keys(operations)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", path, got, want)
		}
	}
	exec := doc.Paths[pod+"exec"]["get"]
	for _, part := range []string{`"x-kubernetes-action":"connect"`, `"operationId":"connectCoreV1GetNamespacedPodExec"`, `"kind":"PodExecOptions"`} {
		if !strings.Contains(string(exec), part) {
			t.Errorf("no %s in %s", part, exec)
		}
	}
}
