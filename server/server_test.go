package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/server/tokens"
)

func start(t *testing.T, c Config) *Server {
	t.Helper()
	c.Linger = 10 * time.Millisecond
	if c.Controllers == nil {
		c.Controllers = []string{} // their requests would count, and meet routes being added
	}
	s := New(c)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	settle(t, s)
	return s
}

// anonymous returns a client that trusts the server and shows no certificate.
func anonymous(t *testing.T, s *Server) *http.Client {
	t.Helper()
	client, err := clientrest.HTTPClientFor(clientrest.AnonymousClientConfig(s.RESTConfig()))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func admin(t *testing.T, s *Server) *http.Client {
	t.Helper()
	client, err := clientrest.HTTPClientFor(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func do(t *testing.T, client *http.Client, method, url, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// checkStatus asserts that an error is a Status that agrees with the HTTP code.
func checkStatus(t *testing.T, path string, code int, header http.Header, body string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Errorf("%s: %v in %s", path, err, body)
		return
	}
	if status.Kind != "Status" || status.Status != "Failure" || int(status.Code) != code || status.Reason == "" {
		t.Errorf("%s: not a Status of %d: %s", path, code, body)
	}
	if got := header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: content type %s", path, got)
	}
}

func TestBadCertificate(t *testing.T) {
	s, other := start(t, Config{}), start(t, Config{})
	config := other.RESTConfig()
	config.Host, config.CAData = s.URL(), s.RESTConfig().CAData
	client, err := clientrest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	code, header, body := do(t, client, "GET", s.URL()+"/livez", "")
	if code != 401 || !strings.Contains(body, `"Unauthorized"`) {
		t.Errorf("%d %s", code, body)
	}
	checkStatus(t, "/livez", code, header, body)
}

func TestVersion(t *testing.T) {
	got, err := version.ParseSemantic(Version().GitVersion)
	if err != nil {
		t.Fatal(err)
	}
	if want := version.MustParseSemantic(KubernetesVersion); got.LessThan(want) || want.LessThan(got) {
		t.Errorf("%s is not equal to %s in semver's order", got, want)
	}
	gomod, err := os.ReadFile("../go.mod")
	if err != nil || !strings.Contains(string(gomod), "k8s.io/kubernetes "+KubernetesVersion+"\n") {
		t.Errorf("go.mod requires another k8s.io/kubernetes than %s (%v)", KubernetesVersion, err)
	}
}

func TestConfigErrors(t *testing.T) {
	tests := []struct {
		name string
		c    Config
		has  string
	}{
		{"no port", Config{Listen: "localhost"}, "write HOST:PORT"},
		{"port is a word", Config{Listen: "127.0.0.1:https-alt-nope"}, "write HOST:PORT"},
		{"no such host", Config{Listen: "no.such.host.invalid:0"}, "write HOST:PORT"},
		{"name", Config{SANs: []string{"no spaces"}}, "write a DNS name"},
		{"DSN", Config{DSN: "oracle://u:s3cret@h/db"}, "write sqlite://"},
		{"controllers", Config{Controllers: []string{"nope"}}, "write *"},
		{"runtime config", Config{RuntimeConfig: map[string]string{"apps/v2": "true"}}, `version "apps/v2" is not known`},
		{"admission plugin", Config{EnableAdmissionPlugins: []string{"Nope", "Nada"}}, `plugin "Nope" is unknown; write names out of AlwaysAdmit`},
		{"admission plugin to leave out", Config{DisableAdmissionPlugins: []string{"Nope"}}, `disable-admission-plugins plugin "Nope" is unknown`},
		{"admission plugin without its configuration", Config{EnableAdmissionPlugins: []string{"ImagePolicyWebhook"}}, "no config specified"},
		{"admission configuration", Config{AdmissionConfigFile: "/nowhere/config.yaml"}, "unable to read admission control configuration"},
		{"delay", Config{ShutdownDelay: time.Minute}, "shutdown timeout"},
		{"negative", Config{RequestTimeout: -1}, "write a duration"},
		{"issuer", Config{Tokens: tokens.Options{Issuers: []string{""}}}, "write a URL"},
		{"issuer twice", Config{Tokens: tokens.Options{Issuers: []string{"a", "a"}}}, "twice"},
		{"issuer that is nearly a URL", Config{Tokens: tokens.Options{Issuers: []string{"https://a:port"}}}, "write a URL"},
		{"audience", Config{Tokens: tokens.Options{Audiences: []string{"a", ""}}}, "write what tokens are to be for"},
		{"life of tokens", Config{Tokens: tokens.Options{MaxExpiration: time.Minute}}, "at least 1h"},
		{"keys' URL", Config{Tokens: tokens.Options{JWKSURI: "http://a.example.com"}}, "write an https URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := New(tt.c).Open(t.Context())
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.has) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A failed Open leaves no listener behind.
func TestOpenFails(t *testing.T) {
	first := start(t, Config{})
	taken := strings.TrimPrefix(first.URL(), "https://")
	if err := New(Config{Listen: taken}).Open(t.Context()); err == nil || errors.Is(err, ErrConfig) {
		t.Errorf("on a port that is taken: %v", err)
	}
	s := New(Config{DSN: "sqlite://" + filepath.Join(t.TempDir(), "a", "b")})
	blocked := filepath.Dir(strings.TrimPrefix(s.config.DSN, "sqlite://"))
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err == nil {
		t.Fatal("opened a database below a file")
	}
	if _, err := s.listener.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}

func TestDataDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var kubeconfigs []string
	for range 2 {
		s := New(Config{DataDir: dir, SANs: []string{"plinth.example.com"}, Linger: time.Millisecond})
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", s.KubeconfigPath())
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != s.URL() || strings.HasSuffix(config.Host, ":0") {
			t.Errorf("kubeconfig points at %s, the server is at %s", config.Host, s.URL())
		}
		config.ServerName = "plinth.example.com"
		client := kubernetes.NewForConfigOrDie(config)
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		kubeconfigs = append(kubeconfigs, string(config.CertData))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if kubeconfigs[0] != kubeconfigs[1] {
		t.Error("the admin's certificate changed with a restart")
	}
}

// route adds a route of the test's own to a running server.
func route(s *Server, path string, h echo.HandlerFunc) { s.handler.(router).GET(path, h) }

func TestPanic(t *testing.T) {
	var logged strings.Builder
	s := New(Config{Linger: time.Millisecond, Controllers: []string{}, Logf: func(f string, a ...any) { fmt.Fprintf(&logged, f, a...) }})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	route(s, "/early", func(echo.Context) error { panic("too early") })
	route(s, "/late", func(c echo.Context) error {
		fmt.Fprint(c.Response(), "half of")
		c.Response().Flush()
		panic("too late")
	})
	client := admin(t, s)
	code, header, body := do(t, client, "GET", s.URL()+"/early", "")
	if code != 500 || body != errPanic.Text+"\n" || header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%d %s", code, body)
	}
	resp, err := client.Get(s.URL() + "/late")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half an answer looks whole: %s", text)
	}
	resp.Body.Close()
	if code, _, _ := do(t, client, "GET", s.URL()+"/livez", ""); code != 200 {
		t.Errorf("after the panics /livez answers %d", code)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"too early", "too late", "server_test.go"} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, logged.String())
		}
	}
}

func TestRequestTimeout(t *testing.T) {
	s := start(t, Config{})
	route(s, "/slow", func(c echo.Context) error {
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	})
	code, header, body := do(t, admin(t, s), "GET", s.URL()+"/slow?timeout=50ms", "")
	if code != 504 || !strings.Contains(body, "request did not complete within the allotted timeout") {
		t.Errorf("%d %s", code, body)
	}
	if got := header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("content type %s", got)
	}
	// A body that never comes does not hold the request either.
	stuck, stop := io.Pipe()
	defer stop.Close()
	req, _ := http.NewRequest("POST", s.URL()+"/api/v1/namespaces/default/configmaps?timeout=50ms", stuck)
	req.Header.Set("Content-Type", "application/json")
	resp, err := admin(t, s).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode < 400 {
		t.Errorf("a write without its body got %d", resp.StatusCode)
	}
}

func TestTooManyRequests(t *testing.T) {
	s := start(t, Config{MaxReads: 1})
	entered, leave := make(chan struct{}), make(chan struct{})
	route(s, "/healthz/hold", func(echo.Context) error { close(entered); <-leave; return nil })
	held := make(chan int)
	client := anonymous(t, s)
	go func() {
		resp, err := client.Get(s.URL() + "/healthz/hold")
		if err != nil {
			held <- 0
			return
		}
		resp.Body.Close()
		held <- resp.StatusCode
	}()
	<-entered
	code, header, body := do(t, client, "GET", s.URL()+"/version", "")
	if code != 429 || header.Get("Retry-After") != "1" || body != "Too many requests, please try again later.\n" {
		t.Errorf("%d, Retry-After %q: %s", code, header.Get("Retry-After"), body)
	}
	if code, _, _ := do(t, admin(t, s), "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("the admin got %d", code)
	}
	close(leave)
	if code := <-held; code != 200 {
		t.Errorf("the request that was let in got %d", code)
	}
	if code, _, _ := do(t, client, "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("afterwards: %d", code)
	}
}

func TestTooLarge(t *testing.T) {
	s := start(t, Config{})
	body := `{"metadata":{"name":"a"},"data":{"k":"` + strings.Repeat("x", 3<<20) + `"}}`
	code, header, text := do(t, admin(t, s), "POST", s.URL()+"/api/v1/namespaces/default/configmaps", body)
	if code != 413 || !strings.Contains(text, "limit is 3145728") {
		t.Errorf("%d %s", code, text)
	}
	checkStatus(t, "configmaps", code, header, text)
}

// A stop lets the write in flight finish, ends the watch cleanly after its last event,
// and leaves the write in the database.
func TestShutdown(t *testing.T) {
	dir := t.TempDir()
	s := New(Config{DataDir: dir, ShutdownDelay: 200 * time.Millisecond, Controllers: []string{}})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	url := s.URL() + "/api/v1/namespaces/default/configmaps"
	client := admin(t, s)
	watch, err := client.Get(url + "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()

	half, rest := io.Pipe()
	req, _ := http.NewRequest("POST", url, half)
	req.Header.Set("Content-Type", "application/json")
	code := make(chan int, 1)
	go func() {
		resp, err := client.Do(req)
		if err != nil {
			t.Error(err)
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}()
	fmt.Fprint(rest, `{"metadata":{"name":`)
	for s.running.count.Load() < 2 { // the watch and the write
		time.Sleep(time.Millisecond)
	}

	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for !s.stopping.Load() {
		time.Sleep(time.Millisecond)
	}
	if code, _, body := do(t, client, "GET", s.URL()+"/readyz", ""); code != 500 || !strings.Contains(body, "[-]shutdown failed") {
		t.Errorf("/readyz while stopping: %d %s", code, body)
	}
	for !s.running.closed.Load() {
		time.Sleep(time.Millisecond)
	}
	for { // until the port is closed to new connections
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"))
		if err != nil {
			break
		}
		conn.Close()
	}
	fmt.Fprint(rest, `"in-flight"}}`)
	rest.Close()
	if got := <-code; got != 201 {
		t.Errorf("the write in flight got %d", got)
	}
	last := ""
	lines := bufio.NewScanner(watch.Body)
	for lines.Scan() {
		last = lines.Text()
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the watch broke off: %v", err)
	}
	if last != "" && !strings.Contains(last, `"type":"ADDED"`) && !strings.Contains(last, `"type":"BOOKMARK"`) {
		t.Errorf("the watch ended with %s", last)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}

	again := start(t, Config{DataDir: dir})
	if code, _, body := do(t, admin(t, again), "GET", again.URL()+"/api/v1/namespaces/default/configmaps/in-flight", ""); code != 200 {
		t.Errorf("after the restart: %d %s", code, body)
	}
}

// A request that does not end is cut off, and Close says so.
func TestShutdownTimeout(t *testing.T) {
	s := New(Config{ShutdownTimeout: 100 * time.Millisecond, Controllers: []string{}})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	entered := make(chan struct{})
	route(s, "/hold", func(c echo.Context) error {
		close(entered)
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	})
	ended := make(chan struct{})
	client := admin(t, s)
	go func() {
		defer close(ended)
		if resp, err := client.Get(s.URL() + "/hold"); err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("Close: %v", err)
	}
	<-ended
}

func TestInProcess(t *testing.T) {
	s := start(t, Config{})
	client := kubernetes.NewForConfigOrDie(s.InProcess(nil))
	maps := client.CoreV1().ConfigMaps("default")
	ctx, cancel := context.WithCancel(t.Context())
	w, err := maps.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := maps.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		event := <-w.ResultChan()
		if got := event.Object.(*corev1.ConfigMap).Name; event.Type != "ADDED" || got != name {
			t.Errorf("event %s %s, want %s", event.Type, got, name)
		}
	}
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("list: %v, %v", list, err)
	}
	review, err := client.AuthenticationV1().RESTClient().Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").
		Body([]byte(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`)).DoRaw(ctx)
	if err != nil || !strings.Contains(string(review), user.APIServerUser) {
		t.Errorf("who am I: %s, %v", review, err)
	}
	cancel()
	for range w.ResultChan() {
	}
	for s.running.count.Load() != 0 { // the handler has noticed
		time.Sleep(time.Millisecond)
	}
}

// Somebody else's rights hold in process too.
func TestInProcessUser(t *testing.T) {
	s := start(t, Config{})
	ada := &user.DefaultInfo{Name: "ada", Groups: []string{user.AllAuthenticated}}
	_, err := kubernetes.NewForConfigOrDie(s.InProcess(ada)).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), `User "ada" cannot list resource "pods"`) {
		t.Errorf("error %v", err)
	}
}

func TestMetrics(t *testing.T) {
	s := start(t, Config{})
	client := admin(t, s)
	do(t, client, "GET", s.URL()+"/api/v1/namespaces/default/podtemplates/none", "")
	do(t, client, "GET", s.URL()+"/api/v1/made-up/by-a-client", "")
	_, _, text := do(t, client, "GET", s.URL()+"/metrics", "")
	want := `apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="podtemplates",scope="resource",subresource="",verb="GET",version="v1"} 1`
	if !strings.Contains(text, want) {
		t.Errorf("no line %s in\n%s", want, text)
	}
	if strings.Contains(text, "made-up") {
		t.Error("a client's words are a label")
	}
}
