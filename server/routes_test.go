package server

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/kind"
)

// What the server itself says, in upstream's words.
const (
	noPath     = "404 page not found\n" // as text: not the API
	notFound   = "the server could not find the requested resource"
	notAllowed = "the server does not allow this method on the requested resource"
	noRequest  = `Internal Server Error: "/api/v1/watch": failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch` + "\n"
	outOfTime  = `{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}` + "\n"
)

// TestConventions has a row for each form of path and method that the server tells apart,
// with what kube-apiserver answers. An answer of 400 and more that is not text is a Status
// with that message and no Allow header.
func TestConventions(t *testing.T) {
	s := start(t, Config{})
	a, n := apitest.Admin(t, s), apitest.Anonymous(t, s)
	tests := []struct {
		name         string
		client       *http.Client
		method, path string
		code         int
		media        string // text, json; of errors: text, status
		has          string
	}{
		// The index and the documents that are not the API's take any method.
		{"index", a, "GET", "/", 200, "json", `"/readyz/etcd"`},
		{"index by its other name", a, "GET", "/index.html", 200, "json", `"/index.html"`},
		{"index, any method", a, "PUT", "/", 200, "json", `"paths"`},
		{"index, a method of one's own", a, "FROB", "/", 200, "json", `"paths"`},
		{"double slash", a, "GET", "//", 404, "text", noPath},
		{"/apis, any method", a, "POST", "/apis", 200, "json", "APIGroupList"},
		{"group, any method", a, "DELETE", "/apis/apps", 200, "json", "APIGroup"},
		{"openapi v2, any method", a, "PATCH", "/openapi/v2", 200, "json", `"swagger"`},
		{"openapi v3 index is text", a, "GET", "/openapi/v3", 200, "text", `"paths"`},
		{"metrics", a, "GET", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "plinth_revision"},
		{"probe, any method", n, "OPTIONS", "/livez/ping", 403, "status", `forbidden: User "system:anonymous" cannot options path "/livez/ping"`},
		{"probe, any method of the admin", a, "OPTIONS", "/livez/ping", 200, "text", "ok"},

		// Discovery below takes GET.
		{"/api", a, "GET", "/api", 200, "json", "APIVersions"},
		{"/api, slashes at the end", a, "GET", "/api//", 200, "json", "APIVersions"},
		{"/api, other method", a, "POST", "/api", 405, "status", notAllowed},
		{"/api, HEAD", a, "HEAD", "/api", 405, "", ""},
		{"version of the API", a, "GET", "/api/v1/", 200, "json", "APIResourceList"},
		{"version of the API, other method", a, "OPTIONS", "/apis/apps/v1", 405, "status", notAllowed},
		{"unknown version", a, "GET", "/api/v2", 404, "status", notFound},
		{"unknown version, other method", a, "POST", "/api/v2", 404, "status", notFound},
		{"unknown version of a group", a, "GET", "/apis/apps/v2", 404, "status", notFound},
		{"unknown group", a, "GET", "/apis/nope.io", 404, "text", noPath},
		{"unknown group and version", a, "GET", "/apis/nope.io/v1", 404, "text", noPath},
		{"resource of an unknown group", a, "POST", "/apis/nope.io/v1/things", 404, "text", noPath},
		{"/apis without a group", a, "GET", "/apis//", 404, "text", noPath},

		// So does /version.
		{"version", n, "GET", "/version", 200, "json", `"` + kind.Release},
		{"version with a slash", n, "GET", "/version/", 200, "json", `"` + kind.Release},
		{"version, other method", a, "POST", "/version", 405, "status", notAllowed},
		{"version, OPTIONS", a, "OPTIONS", "/version", 405, "status", notAllowed},
		{"version, a method of one's own", a, "FROB", "/version", 405, "status", notAllowed},
		{"below version", a, "GET", "/version/x", 404, "status", notFound},

		// Everything else is not there, in text.
		{"unknown path", a, "GET", "/nope", 404, "text", noPath},
		{"unknown path, other method", a, "DELETE", "/nope/x", 404, "text", noPath},
		{"almost the API", a, "GET", "/apiv1", 404, "text", noPath},
		{"unknown check", a, "GET", "/livez/nope", 404, "text", noPath},
		{"probe with a slash", a, "GET", "/livez/", 404, "text", noPath},
		{"unknown openapi", a, "GET", "/openapi/v4", 404, "text", noPath},
		{"unknown document", a, "GET", "/openapi/v3/nope", 404, "", ""},

		// Resources: the path is looked at before the method.
		{"object", a, "GET", "/api/v1/namespaces/default", 200, "json", `"Namespace"`},
		{"slash at the end", a, "GET", "/api/v1/namespaces/default/", 200, "json", `"Namespace"`},
		{"unknown resource", a, "GET", "/api/v1/nopes", 404, "status", notFound},
		{"unknown resource, other method", a, "FROB", "/api/v1/nopes", 404, "status", notFound},
		{"unknown version of a resource", a, "GET", "/apis/apps/v2/deployments", 404, "status", notFound},
		{"unknown subresource", a, "GET", "/api/v1/namespaces/default/configmaps/a/status", 404, "status", notFound},
		{"below a subresource", a, "GET", "/api/v1/namespaces/default/pods/a/status/x", 404, "status", notFound},
		{"double slash before a resource", a, "GET", "/api/v1//namespaces", 404, "status", notFound},
		{"double slash within", a, "GET", "/api/v1/namespaces/default//configmaps", 404, "status", notFound},
		{"encoded slash", a, "GET", "/api/v1/namespaces/default/configmaps/a%2Fb", 404, "status", notFound},
		{"encoded letters of the API's path", a, "GET", "/%61pi/v1/namespaces%2Fdefault", 200, "json", `"Namespace"`},
		{"encoded slash, not the API", a, "GET", "/livez%2Fping", 200, "text", "ok"},
		{"dots for a namespace", a, "GET", "/api/v1/namespaces/%2e%2e/configmaps", 500, "plain status", `invalid key: "/configmaps/.."`},
		{"dots for the namespace of an object", a, "GET", "/api/v1/namespaces/../configmaps/a", 500, "plain status", `invalid key: "/configmaps/../a"`},
		{"export", a, "GET", "/api/v1/namespaces/default?export=1", 400, "status", "the export parameter, deprecated since v1.14, is no longer supported"},
		{"no export", a, "GET", "/api/v1/namespaces/default?export=false", 200, "json", `"Namespace"`},
		{"encoded letter", a, "GET", "/api/v1/namespaces/d%65fault", 200, "json", `"Namespace"`},
		{"dots", a, "GET", "/api/v1/namespaces/default/configmaps/..", 400, "status", `Name parameter invalid: "..": may not be '..'`},
		{"percent sign in a name", a, "DELETE", "/api/v1/nodes/a%25b", 400, "status", `Name parameter invalid: "a%b": may not contain '%'`},
		{"no namespace in the path", a, "GET", "/api/v1/namespaces//configmaps/a", 400, "status", "Namespace parameter required."},
		{"no namespace in the path, list", a, "GET", "/api/v1/namespaces//configmaps", 200, "json", "ConfigMapList"},
		{"no name in the path", a, "GET", "/api/v1/nodes//status", 400, "status", "name must be provided"},
		{"cluster-scoped resource in a namespace", a, "GET", "/api/v1/namespaces/default/nodes", 404, "status", notFound},
		{"cluster-scoped object in a namespace", a, "GET", "/api/v1/namespaces/default/nodes/x", 404, "status", notFound},
		{"namespaces in a namespace", a, "GET", "/api/v1/namespaces/default/namespaces", 404, "status", notFound},
		{"namespace in itself", a, "GET", "/api/v1/namespaces/default/namespaces/default", 404, "status", notFound},
		{"namespaced object without a namespace", a, "GET", "/api/v1/configmaps/a", 404, "status", notFound},
		{"namespaced object without a namespace, other method", a, "FROB", "/api/v1/configmaps/a", 404, "status", notFound},
		{"list of all namespaces", a, "GET", "/api/v1/configmaps", 200, "json", "ConfigMapList"},
		{"create without a namespace", a, "POST", "/api/v1/configmaps", 405, "status", notAllowed},
		{"deletecollection of all namespaces", a, "DELETE", "/api/v1/configmaps", 405, "status", notAllowed},
		{"PUT of a collection", a, "PUT", "/api/v1/namespaces/default/configmaps", 405, "status", notAllowed},
		{"PATCH of a collection", a, "PATCH", "/api/v1/nodes", 405, "status", notAllowed},
		{"POST of an object", a, "POST", "/api/v1/nodes/x", 405, "status", notAllowed},
		{"POST of a subresource", a, "POST", "/api/v1/nodes/x/status", 405, "status", notAllowed},
		{"HEAD of an object", a, "HEAD", "/api/v1/namespaces/default", 405, "", ""},
		{"HEAD of a collection", a, "HEAD", "/api/v1/namespaces", 405, "", ""},
		{"OPTIONS", a, "OPTIONS", "/api/v1/namespaces", 405, "status", notAllowed},
		{"a method of one's own", a, "FROB", "/api/v1/namespaces/default", 405, "status", notAllowed},
		{"namespaces cannot be deleted as a collection", a, "DELETE", "/api/v1/namespaces", 405, "status", notAllowed},
		{"review, read", a, "GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 405, "status", notAllowed},
		{"review by name", a, "GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews/x", 404, "status", notFound},
		{"review of a namespace without one", a, "POST", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews", 404, "status", notFound},
		{"watch path of an object without its namespace", a, "GET", "/api/v1/watch/configmaps/a", 404, "status", notFound},
		{"watch path of a subresource", a, "GET", "/api/v1/watch/nodes/x/status", 404, "status", notFound},
		{"watch path, other method", a, "POST", "/api/v1/watch/namespaces/default/configmaps", 405, "status", notAllowed},
		{"watch path, HEAD", a, "HEAD", "/api/v1/watch/nodes", 405, "", ""},
		{"watch path of what cannot be watched", a, "GET", "/apis/authorization.k8s.io/v1/watch/subjectaccessreviews", 404, "status", notFound},
		{"watch path of nothing", a, "GET", "/api/v1/watch", 500, "text", noRequest},
		{"proxy path of old", a, "GET", "/api/v1/proxy/nodes/x", 404, "status", notFound},
		{"unknown query parameter", a, "GET", "/api/v1/namespaces/default?nope=1&&x", 200, "json", `"Namespace"`},

		// A caller who may not ask is not told what is there.
		{"anonymous, index", n, "GET", "/", 403, "status", `forbidden: User "system:anonymous" cannot get path "/"`},
		{"anonymous, discovery", n, "GET", "/api", 403, "status", `forbidden: User "system:anonymous" cannot get path "/api"`},
		{"anonymous, unknown path", n, "GET", "/nope", 403, "status", `forbidden: User "system:anonymous" cannot get path "/nope"`},
		{"anonymous, metrics", n, "GET", "/metrics", 403, "status", `forbidden: User "system:anonymous" cannot get path "/metrics"`},
		{"anonymous, resource", n, "GET", "/api/v1/pods", 403, "status", `pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope`},
		{"anonymous, object", n, "PUT", "/api/v1/namespaces/default/pods/x", 403, "status", `pods "x" is forbidden: User "system:anonymous" cannot update resource "pods" in API group "" in the namespace "default"`},
		{"anonymous, subresource", n, "PATCH", "/apis/apps/v1/namespaces/default/deployments/x/scale", 403, "status", `deployments.apps "x" is forbidden: User "system:anonymous" cannot patch resource "deployments/scale" in API group "apps" in the namespace "default"`},
		{"anonymous, watch", n, "GET", "/api/v1/pods?watch=1", 403, "status", `pods is forbidden: User "system:anonymous" cannot watch resource "pods" in API group "" at the cluster scope`},
		{"anonymous, unknown resource", n, "GET", "/api/v1/nopes", 403, "status", `nopes is forbidden: User "system:anonymous" cannot list resource "nopes" in API group "" at the cluster scope`},

		// timeout=
		{"timeout that is no duration", a, "GET", "/api/v1/nodes?timeout=soon", 400, "status", `invalid timeout specified in the request URL - time: invalid duration "soon"`},
		{"timeout without a unit", n, "POST", "/livez?timeout=5", 400, "status", `invalid timeout specified in the request URL - time: missing unit in duration "5"`},
		{"timeout before permission", n, "GET", "/api/v1/nodes?timeout=soon", 400, "status", `invalid timeout specified in the request URL - time: invalid duration "soon"`},
		{"timeout of a watch is not looked at", n, "GET", "/api/v1/nodes?watch=1&timeout=soon", 403, "status", `nodes is forbidden: User "system:anonymous" cannot watch resource "nodes" in API group "" at the cluster scope`},
		{"empty timeout", a, "GET", "/api/v1/nodes?timeout=", 200, "json", "NodeList"},
		{"timeout of 0", a, "GET", "/api/v1/nodes?timeout=0s", 200, "json", "NodeList"},
		{"negative timeout", a, "GET", "/api/v1/nodes?timeout=-1s", 200, "json", "NodeList"},
		{"timeout that is too long", a, "GET", "/api/v1/nodes?timeout=1h", 200, "json", "NodeList"},
		{"timeout that is over", a, "GET", "/api/v1/nodes?timeout=1ns", 504, "text", outOfTime},
		{"timeout that is over, not the API", a, "GET", "/livez?timeout=1ns", 504, "text", outOfTime},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, header, body := apitest.Do(t, tt.client, tt.method, s.URL()+tt.path, "")
			if code != tt.code {
				t.Errorf("%s %s: %d %s; want %d", tt.method, tt.path, code, body, tt.code)
			}
			checkMedia(t, header, tt.media)
			switch {
			case tt.media == "status":
				checkMessage(t, body, code, tt.has)
			case tt.media == "plain status": // without a reason
				checkMessage(t, strings.Replace(body, `"status":"F`, `"reason":"none","status":"F`, 1), code, tt.has)
			case code >= 400 && body != tt.has, !strings.Contains(body, tt.has):
				t.Errorf("body %s, want %s", body, tt.has)
			}
			checkHeaders(t, header, tt.path)
		})
	}
}

// checkMedia asserts that an answer is of the kind that the row says.
func checkMedia(t *testing.T, header http.Header, media string) {
	t.Helper()
	want := map[string]string{"json": "application/json", "status": "application/json", "plain status": "application/json", "text": "text/plain; charset=utf-8"}[media]
	if want == "" {
		want = media
	}
	if got := header.Get("Content-Type"); media != "" && got != want {
		t.Errorf("content type %s, want %s", got, want)
	}
}

// checkMessage asserts that a body is a Status that agrees with the HTTP code.
func checkMessage(t *testing.T, body string, code int, message string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Fatal(err)
	}
	if status.Kind != "Status" || status.Status != "Failure" || int(status.Code) != code || status.Reason == "" {
		t.Errorf("not a Status of %d: %s", code, body)
	}
	if status.Message != message {
		t.Errorf("message %s, want %s", status.Message, message)
	}
	if code == 404 || code == 405 {
		if status.Details == nil || len(status.Details.Causes) > 0 {
			t.Errorf("details: %s", body)
		}
	}
}

// checkHeaders asserts what all answers have in common.
func checkHeaders(t *testing.T, header http.Header, path string) {
	t.Helper()
	cached := "no-cache, private"
	if path == "/api/v1/watch" {
		cached = "" // refused before anything else
	}
	if got := header.Get("Cache-Control"); got != cached {
		t.Errorf("Cache-Control: %s", got)
	}
	if header.Get("Audit-Id") == "" || header.Get("Allow") != "" {
		t.Errorf("headers: %v", header)
	}
}

func TestAuditID(t *testing.T) {
	s := start(t, Config{})
	seen := map[string]bool{}
	for _, asked := range []string{"", "", "of the client's own"} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/livez", nil)
		req.Header.Set("Audit-ID", asked)
		resp, err := apitest.Admin(t, s).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got := resp.Header.Get("Audit-Id")
		if asked != "" && got != asked || len(got) == 0 || seen[got] {
			t.Errorf("asked for %q, got %q", asked, got)
		}
		seen[got] = true
	}
}

func TestImpersonatingNobody(t *testing.T) {
	s := start(t, Config{})
	for header, want := range map[string]string{
		"Impersonate-Group":     `requested \u0026user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"x\"}, Extra:map[string][]string(nil)} without impersonating a user name`,
		"Impersonate-Uid":       `requested \u0026user.DefaultInfo{Name:\"\", UID:\"x\", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name`,
		"Impersonate-Extra-Foo": `requested \u0026user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string(nil), Extra:map[string][]string{\"foo\":[]string{\"x\"}}} without impersonating a user name`,
	} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/api?a=<b>", nil)
		req.Header.Set(header, "x")
		resp, err := apitest.Admin(t, s).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 1000)
		n, _ := resp.Body.Read(body)
		resp.Body.Close()
		if got := string(body[:n]); resp.StatusCode != 400 || !strings.Contains(got, `"message":"`+want+`"`) {
			t.Errorf("%s: %d %s", header, resp.StatusCode, got)
		}
	}
}

// A connection that is still open when the server stops is told to come back.
func TestRefusedWhenStopping(t *testing.T) {
	s := start(t, Config{})
	client := apitest.Admin(t, s)
	apitest.Do(t, client, "GET", s.URL()+"/version", "")
	s.guard.Close()
	code, header, body := apitest.Do(t, client, "GET", s.URL()+"/api/v1/nodes", "")
	if code != 503 || header.Get("Retry-After") != "1" {
		t.Errorf("%d, Retry-After %s", code, header.Get("Retry-After"))
	}
	checkMessage(t, body, 503, "apiserver is shutting down")
}

// A body that is only a little too large is read, so that an HTTP/1 connection goes on.
func TestTooLargeKeepsTheConnection(t *testing.T) {
	s := start(t, Config{})
	client := apitest.Admin(t, s)
	transport := client.Transport.(utilnet.RoundTripperWrapper).WrappedRoundTripper().(*http.Transport).Clone()
	transport.ForceAttemptHTTP2, transport.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	transport.TLSClientConfig.NextProtos = nil
	defer transport.CloseIdleConnections()
	body := `{"metadata":{"name":"a"},"data":{"k":"` + strings.Repeat("x", 3<<20) + `"}}`
	resp, err := (&http.Client{Transport: transport}).Post(s.URL()+"/api/v1/namespaces/default/configmaps", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 413 || resp.ProtoMajor != 1 || resp.Close {
		t.Errorf("%d, %s, close %v", resp.StatusCode, resp.Proto, resp.Close)
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
	code, header, body := apitest.Do(t, client, "GET", s.URL()+"/livez", "")
	if code != 401 || !strings.Contains(body, `"Unauthorized"`) {
		t.Errorf("%d %s", code, body)
	}
	checkStatus(t, "/livez", code, header, body)
}

func TestPanic(t *testing.T) {
	var logged apitest.Lines
	s := New(Config{Linger: time.Millisecond, Controllers: []string{}, Log: logged.Log()})
	panicEarly(s)
	panicLate(s)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	client := apitest.Admin(t, s)
	code, header, body := apitest.Do(t, client, "GET", s.URL()+"/early", "")
	if code != 500 || body != "This request caused apiserver to panic. Look in the logs for details.\n" || header.Get("Content-Type") != "text/plain; charset=utf-8" {
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
	if code, _, _ := apitest.Do(t, client, "GET", s.URL()+"/livez", ""); code != 200 {
		t.Errorf("after the panics /livez answers %d", code)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"too early", "too late", "harness_test.go"} {
		if !strings.Contains(logged.All(), want) {
			t.Errorf("the log has no %s:\n%s", want, logged.All())
		}
	}
}

func TestRequestTimeout(t *testing.T) {
	s := start(t, Config{}, slow)
	code, header, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/slow?timeout=50ms", "")
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
	resp, err := apitest.Admin(t, s).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode < 400 {
		t.Errorf("a write without its body got %d", resp.StatusCode)
	}
}

func TestTooManyRequests(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := start(t, Config{MaxReads: 1, NoFairness: true}, idle,
		route("/openapi/hold", func(echo.Context) error { close(entered); <-leave; return nil }))
	held := make(chan int)
	client := clientAs(t, s, "ada")
	go func() {
		resp, err := client.Get(s.URL() + "/openapi/hold")
		if err != nil {
			held <- 0
			return
		}
		resp.Body.Close()
		held <- resp.StatusCode
	}()
	<-entered
	code, header, body := apitest.Do(t, client, "GET", s.URL()+"/version", "")
	if code != 429 || header.Get("Retry-After") != "1" || body != "Too many requests, please try again later.\n" {
		t.Errorf("%d, Retry-After %q: %s", code, header.Get("Retry-After"), body)
	}
	if code, _, _ := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("the admin got %d", code)
	}
	close(leave)
	if code := <-held; code != 200 {
		t.Errorf("the request that was let in got %d", code)
	}
	if code, _, _ := apitest.Do(t, client, "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("afterwards: %d", code)
	}
}

func TestTooLarge(t *testing.T) {
	s := start(t, Config{})
	body := `{"metadata":{"name":"a"},"data":{"k":"` + strings.Repeat("x", 3<<20) + `"}}`
	code, header, text := apitest.Do(t, apitest.Admin(t, s), "POST", s.URL()+"/api/v1/namespaces/default/configmaps", body)
	if code != 413 || !strings.Contains(text, "limit is 3145728") {
		t.Errorf("%d %s", code, text)
	}
	checkStatus(t, "configmaps", code, header, text)
}
