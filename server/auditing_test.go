package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/audit"
)

// essence has the stage, the code, the message and the annotations of each event, without the
// authorizer's annotations.
func essence(events []map[string]any) (list []string) {
	for _, e := range events {
		line := fmt.Sprint(e["stage"])
		if status, ok := e["responseStatus"].(map[string]any); ok {
			line += fmt.Sprintf(" %v", status["code"])
			if message := status["message"]; message != nil {
				line += fmt.Sprintf(" %v", message)
			}
		}
		notes, _ := e["annotations"].(map[string]any)
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name := range notes {
				if !strings.HasPrefix(name, "authorization.") && !yield(name) {
					return
				}
			}
		}) {
			line += fmt.Sprintf(" %s=%v", name, notes[name])
		}
		list = append(list, line)
	}
	return list
}

// asked makes a request with an Audit-Id.
func asked(t *testing.T, client *http.Client, id, method, url, body string) int {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Audit-Id", id)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(r)
	must(t, err)
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // one is broken off
	return answer.StatusCode
}

func TestAuditPanic(t *testing.T) {
	c, log := audited(t)
	s := start(t, c, panicEarly, panicLate)
	client := apitest.Admin(t, s)
	if code := asked(t, client, "early", "GET", s.URL()+"/early", ""); code != 500 {
		t.Errorf("code %d", code)
	}
	asked(t, client, "late", "GET", s.URL()+"/late", "")
	must(t, s.Close())
	for id, events := range readEvents(t, log) {
		if id != "early" && id != "late" {
			continue
		}
		want := []string{"RequestReceived", "Panic 500 APIServer panic'd: too " + id}
		if d := diff.Diff(want, essence(events)); d != "" {
			t.Errorf("%s (-want +got):\n%s", id, d)
		}
	}
}

// TestAuditStop stops the server during a write and a watch. All their events are logged.
func TestAuditStop(t *testing.T) {
	for _, mode := range []string{"blocking", "blocking-strict", "batch"} {
		t.Run(mode, func(t *testing.T) {
			c, log := audited(t)
			c.Audit.LogOptions.BatchOptions.Mode = mode
			c.ShutdownTimeout = 5 * time.Minute
			s := start(t, c, patient, idle)
			client := apitest.Admin(t, s)
			half, rest := io.Pipe()
			r, err := http.NewRequest("POST", s.URL()+"/api/v1/namespaces/default/configmaps", half)
			must(t, err)
			r.Header.Set("Audit-Id", "write")
			r.Header.Set("Content-Type", "application/json")
			codes := make(chan int, 1)
			go func() {
				answer, err := client.Do(r)
				if err != nil {
					codes <- 0
					return
				}
				answer.Body.Close()
				codes <- answer.StatusCode
			}()
			_, err = rest.Write([]byte(`{"metadata":{"name":"a"}`))
			must(t, err)
			w, err := http.NewRequest("GET", s.URL()+"/api/v1/namespaces/default/configmaps?watch=1", nil)
			must(t, err)
			w.Header.Set("Audit-Id", "watch")
			watch, err := client.Do(w)
			must(t, err)
			defer watch.Body.Close()
			apitest.Eventually(t, "both requests run", func() bool { return s.guard.Running() >= 2 })
			closed := make(chan error, 1)
			go func() { closed <- s.Close() }()
			apitest.Eventually(t, "the server stops", s.guard.Closed)
			_, err = rest.Write([]byte(`}`))
			must(t, err)
			must(t, rest.Close())
			if code := <-codes; code != 201 {
				t.Errorf("the write got %d", code)
			}
			must(t, <-closed)
			events := readEvents(t, log)
			for id, want := range map[string][]string{
				"write": {"RequestReceived", "ResponseComplete 201"},
				"watch": {"RequestReceived", "ResponseStarted 200", "ResponseComplete 200"},
			} {
				if d := diff.Diff(want, essence(events[id])); d != "" {
					t.Errorf("%s (-want +got):\n%s", id, d)
				}
			}
		})
	}
}

// TestAuditExec wants an event at the beginning of an upgraded connection and one at its end.
func TestAuditExec(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			c, log := audited(t)
			r := startReached(t, c)
			e := r.stream(t, protocol, "exec", &corev1.PodExecOptions{Command: []string{"echo"}, Container: "c", Stdout: true})
			must(t, e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}))
			must(t, r.Close())
			for _, events := range readEvents(t, log) {
				if ref, _ := events[0]["objectRef"].(map[string]any); ref["subresource"] != "exec" {
					continue
				}
				want := []string{"RequestReceived", "ResponseStarted 101", "ResponseComplete 101"}
				if d := diff.Diff(want, essence(events)); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				return
			}
			t.Error("no events")
		})
	}
}

// TestAuditTokens requests a token and uses it. Both events have the token's id.
func TestAuditTokens(t *testing.T) {
	c, log := audited(t)
	s := start(t, c)
	apitest.AddAccount(t, s, "robot")
	token := apitest.RequestToken(t, s, "robot", authenticationv1.TokenRequestSpec{})
	if apitest.WhoAmI(t, s, token) == nil {
		t.Error("the token is no good")
	}
	must(t, s.Close())
	var issued, used any
	for _, events := range readEvents(t, log) {
		last := events[len(events)-1]
		if notes, _ := last["annotations"].(map[string]any); notes["authentication.kubernetes.io/issued-credential-id"] != nil {
			issued = notes["authentication.kubernetes.io/issued-credential-id"]
		}
		who, _ := last["user"].(map[string]any)
		if who["username"] == "system:serviceaccount:default:robot" {
			used = who["extra"].(map[string]any)["authentication.kubernetes.io/credential-id"]
		}
	}
	if issued == nil || !reflect.DeepEqual(used, []any{issued}) {
		t.Errorf("issued %v, used %v", issued, used)
	}
	if text, err := os.ReadFile(log); err != nil || strings.Contains(string(text), token) {
		t.Errorf("the log has the token (%v)", err)
	}
}

// TestAuditExtension wants the answers of an extension server to be logged without their objects,
// and the extension server to get the Audit-Id.
func TestAuditExtension(t *testing.T) {
	c, log := audited(t)
	s := start(t, c)
	e := startExtension(t, believed(t, []*Server{s}))
	x := clientOf(t, s)
	x.do("POST", "/api/v1/namespaces", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"demo"}}`, 201)
	x.do("POST", apiServices, e.object(""), 201)
	x.do("POST", demoServices, extService, 201)
	apitest.Eventually(t, "requests are handed on", func() bool {
		code, _, _ := apitest.Do(t, x.http, "GET", x.url+extensionAPI, "")
		return code == http.StatusOK
	})
	for id, request := range map[string]string{
		"read": "GET /namespaces/whole/things/a", "write": "POST /namespaces/whole/things", "teapot": "GET /namespaces/whole/things/teapot",
	} {
		method, path, _ := strings.Cut(request, " ")
		asked(t, x.http, id, method, x.url+extensionAPI+path, "{}")
	}
	must(t, s.Close())
	events := readEvents(t, log)
	for id, want := range map[string]string{"read": "ResponseComplete 200", "write": "ResponseComplete 200", "teapot": "ResponseComplete 418"} {
		if d := diff.Diff([]string{"RequestReceived", want}, essence(events[id])); d != "" {
			t.Errorf("%s (-want +got):\n%s", id, d)
			continue
		}
		if last := events[id][1]; last["requestObject"] != nil || last["responseObject"] != nil || last["level"] != "RequestResponse" {
			t.Errorf("%s: %v", id, last)
		}
	}
}

// TestAuditLimits wants events of requests that time out or exceed the limit of requests to say so.
func TestAuditLimits(t *testing.T) {
	c, log := audited(t)
	c.MaxReads, c.NoFairness = 1, true
	entered, leave := make(chan struct{}), make(chan struct{})
	s := start(t, c, idle, slow, route("/openapi/hold", func(echo.Context) error { close(entered); <-leave; return nil }))
	if code := asked(t, apitest.Admin(t, s), "slow", "GET", s.URL()+"/slow?timeout=50ms", ""); code != 504 {
		t.Errorf("code %d", code)
	}
	held, client := make(chan error, 1), clientAs(t, s, "ada")
	go func() {
		answer, err := client.Get(s.URL() + "/openapi/hold")
		if err == nil {
			answer.Body.Close()
		}
		held <- err
	}()
	<-entered
	if code := asked(t, client, "many", "GET", s.URL()+"/version", ""); code != 429 {
		t.Errorf("code %d", code)
	}
	close(leave)
	must(t, <-held)
	must(t, s.Close())
	events := readEvents(t, log)
	for id, want := range map[string]string{
		"slow": "ResponseComplete 504 Timeout: request did not complete within the allotted timeout", "many": "ResponseComplete 429",
	} {
		if d := diff.Diff([]string{"RequestReceived", want}, essence(events[id])); d != "" {
			t.Errorf("%s (-want +got):\n%s", id, d)
		}
	}
}

// TestAuditPatches wants patches that are not JSON to be logged too. An event that cannot be
// encoded is not logged.
func TestAuditPatches(t *testing.T) {
	c, log := audited(t)
	s := start(t, c)
	client := apitest.Admin(t, s)
	apitest.Do(t, client, "POST", s.URL()+"/api/v1/namespaces", `{"metadata":{"name":"request"}}`)
	tests := []struct{ id, media, patch, want string }{
		// The first patch creates the object that the others patch.
		{"apply", "application/apply-patch+yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &d {k: v}\n", "ResponseComplete 201"},
		{"bomb", "application/apply-patch+yaml", "a: &a [" + strings.Repeat("x,", 5000) + "]\nb: [" + strings.Repeat("*a,", 5000) + "]\n", "ResponseComplete 413"},
		{"broken", "application/merge-patch+json", `{"data":`, "ResponseComplete 400"},
		{"binary", "application/json-patch+json", "\xff\x00", "ResponseComplete 400"},
	}
	for _, test := range tests {
		r, err := http.NewRequest("PATCH", s.URL()+"/api/v1/namespaces/request/configmaps/a?fieldManager=m", strings.NewReader(test.patch))
		must(t, err)
		r.Header.Set("Audit-Id", test.id)
		r.Header.Set("Content-Type", test.media)
		answer, err := client.Do(r)
		must(t, err)
		answer.Body.Close()
	}
	must(t, s.Close())
	all := readEvents(t, log)
	for _, test := range tests {
		events := all[test.id]
		if len(events) != 2 || !strings.HasPrefix(essence(events)[1], test.want) || events[1]["requestObject"] == nil {
			t.Errorf("%s: %.500v, want %s", test.id, events, test.want)
		}
	}
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"}}
	if d := diff.Diff(want, all["apply"][1]["requestObject"]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestAuditRemoved wants requests in versions that upstream has removed to be logged as deprecated.
func TestAuditRemoved(t *testing.T) {
	c, log := audited(t)
	c.ServeRemovedAPIs = []string{"extensions/v1beta1"}
	s := start(t, c)
	if code := asked(t, apitest.Admin(t, s), "old", "GET", s.URL()+"/apis/extensions/v1beta1/namespaces/meta/ingresses", ""); code != 200 {
		t.Errorf("code %d", code)
	}
	must(t, s.Close())
	want := []string{"RequestReceived", "ResponseComplete 200 k8s.io/deprecated=true k8s.io/removed-release=1.22"}
	if d := diff.Diff(want, essence(readEvents(t, log)["old"])); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAuditErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const policy = "testdata/audit/policy.yaml"
	for _, test := range []struct {
		name string
		set  func(o *audit.Options)
		has  string
	}{
		{"no such policy", func(o *audit.Options) { o.PolicyFile = "nope.yaml" }, "no such file"},
		{"no rules", func(o *audit.Options) {
			o.PolicyFile = file("empty.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\n")
		}, "0 rules"},
		{"unknown level", func(o *audit.Options) {
			o.PolicyFile = file("level.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Loud}]\n")
		}, `"Loud"`},
		{"another version", func(o *audit.Options) {
			o.PolicyFile = file("version.yaml", "apiVersion: audit.k8s.io/v9\nkind: Policy\nrules: [{level: None}]\n")
		}, "audit.k8s.io/v9"},
		{"below a file", func(o *audit.Options) {
			o.PolicyFile, o.LogOptions.Path = policy, filepath.Join(file("f", ""), "audit.log")
		}, "not a directory"},
		{"a directory", func(o *audit.Options) { o.PolicyFile, o.LogOptions.Path = policy, dir }, "is a directory"},
		{"format", func(o *audit.Options) { o.PolicyFile, o.LogOptions.Path, o.LogOptions.Format = policy, "x", "xml" }, "allowed formats"},
		{"mode", func(o *audit.Options) {
			o.PolicyFile, o.LogOptions.Path, o.LogOptions.BatchOptions.Mode = policy, "x", "lazy"
		}, "allowed modes"},
		{"webhook", func(o *audit.Options) { o.PolicyFile, o.WebhookOptions.ConfigFile = policy, "nope.kubeconfig" }, "no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Config{Audit: audit.NewOptions()}
			test.set(c.Audit)
			err := New(c).Open(t.Context())
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), test.has) {
				t.Errorf("error %v, want %s", err, test.has)
			}
		})
	}
}

// TestAuditWithoutPolicy: without a policy nothing is logged, and the server warns of it.
func TestAuditWithoutPolicy(t *testing.T) {
	var told apitest.Lines
	c, log := audited(t)
	c.Audit.PolicyFile = ""
	c.Log = told.Log()
	s := start(t, c)
	if code, _, _ := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("code %d", code)
	}
	must(t, s.Close())
	if events := readEvents(t, log); len(events) > 0 || !strings.Contains(told.All(), "empty without a policy") {
		t.Errorf("events %v, told %s", events, told.All())
	}
}

// auditSink is a webhook that receives events.
type auditSink struct {
	mu     sync.Mutex
	events []map[string]any // guarded by mu
}

func (a *auditSink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var list struct{ Items []map[string]any }
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, list.Items...)
}

// TestAuditWebhook wants pending events to be sent to the webhook before the server has stopped.
func TestAuditWebhook(t *testing.T) {
	sink := &auditSink{}
	there := httptest.NewServer(sink)
	defer there.Close()
	c, _ := audited(t)
	c.Audit.LogOptions.Path = ""
	c.Audit.WebhookOptions.ConfigFile = webhookConfig(t, there.URL)
	c.Audit.WebhookOptions.BatchOptions.BatchConfig.MaxBatchWait = time.Hour
	s := start(t, c)
	if code := asked(t, apitest.Admin(t, s), "one", "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("code %d", code)
	}
	must(t, s.Close())
	sink.mu.Lock()
	defer sink.mu.Unlock()
	var mine []map[string]any
	for _, e := range sink.events {
		if e["auditID"] == "one" {
			mine = append(mine, e)
		}
	}
	if d := diff.Diff([]string{"RequestReceived", "ResponseComplete 200"}, essence(mine)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestAuditFullDisk: a request whose event cannot be stored is refused in strict mode only.
func TestAuditFullDisk(t *testing.T) {
	for mode, want := range map[string]int{"blocking": 200, "blocking-strict": 500} {
		t.Run(mode, func(t *testing.T) {
			c, _ := audited(t)
			c.Audit.LogOptions.Path = "/dev/full"
			c.Audit.LogOptions.BatchOptions.Mode = mode
			s := start(t, c)
			if code := asked(t, apitest.Admin(t, s), "one", "GET", s.URL()+"/version", ""); code != want {
				t.Errorf("code %d, want %d", code, want)
			}
			if _, _, text := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/metrics", ""); mode == "blocking" && !strings.Contains(text, `apiserver_audit_error_total{plugin="log"}`) {
				t.Error("nothing in /metrics about what was lost")
			}
		})
	}
}

// TestAuditWebhookAway: stopping the server does not wait forever for an unreachable webhook, and
// logs the events that were lost.
func TestAuditWebhookAway(t *testing.T) {
	c, _ := audited(t)
	c.Audit.LogOptions.Path = ""
	c.Audit.WebhookOptions.ConfigFile = webhookConfig(t, "http://127.0.0.1:1")
	c.ShutdownTimeout, c.Linger, c.Controllers = time.Second, time.Millisecond, []string{}
	s := New(c)
	must(t, s.Open(t.Context()))
	if code := asked(t, apitest.Admin(t, s), "one", "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("code %d", code)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "audit events") {
		t.Errorf("error %v", err)
	}
}

// webhookConfig is the kubeconfig with the webhook's URL.
func webhookConfig(t *testing.T, url string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: url}
	config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a"}
	config.CurrentContext = "a"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, file))
	return file
}
