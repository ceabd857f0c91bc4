package server

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientdiscovery "k8s.io/client-go/discovery"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/plinth-io/plinth/server/apitest"
)

// extension is an extension API server for group ext.example.com. It trusts the authorities that
// the cluster's ConfigMap names.
type extension struct {
	http *httptest.Server
	ca   []byte
	more chan struct{} // each value makes a watch send its next event

	emptied atomic.Bool // things of the namespace full were deleted
}

func startExtension(t *testing.T, believed *x509.CertPool) *extension {
	t.Helper()
	cert, ca := certificateOf(t, "ext.demo.svc")
	e := &extension{ca: ca, more: make(chan struct{})}
	e.http = httptest.NewUnstartedServer(e)
	e.http.TLS = &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: believed, ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{"h2", "http/1.1"},
	}
	e.http.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are broken off
	e.http.EnableHTTP2 = true
	e.http.StartTLS()
	t.Cleanup(e.http.Close)
	return e
}

func certificateOf(t *testing.T, name string) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

const extensionAPI = "/apis/ext.example.com/v1"

func (e *extension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if cn := r.TLS.PeerCertificates[0].Subject.CommonName; cn != "front-proxy-client" {
		http.Error(w, "who is "+cn, http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == extensionAPI:
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"ext.example.com/v1","resources":[
			{"name":"things","singularName":"thing","namespaced":true,"kind":"Thing","verbs":["delete","deletecollection","get","list","watch"],"shortNames":["th"]}]}`)
	case path == "/openapi/v3":
		fmt.Fprint(w, `{"paths":{"apis/ext.example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/ext.example.com/v1?hash=1"},
			"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=forged"}}}`)
	case path == "/openapi/v3"+extensionAPI:
		fmt.Fprintf(w, `{"openapi":"3.0.0","info":{"title":"extension","version":%q},"paths":{}}`, r.URL.Query().Get("hash"))
	case !strings.HasPrefix(path, extensionAPI+"/"):
		http.NotFound(w, r)
	case path == extensionAPI+"/namespaces/full/things" && r.Method == http.MethodDelete:
		e.emptied.Store(true)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case strings.HasPrefix(path, extensionAPI+"/namespaces/full/") || strings.HasPrefix(path, extensionAPI+"/namespaces/held/"):
		fmt.Fprint(w, `{"kind":"ThingList","apiVersion":"ext.example.com/v1","metadata":{},"items":[]}`)
	case r.Header.Get("Upgrade") != "":
		e.echo(w)
	case r.URL.Query().Get("watch") != "":
		e.watch(w, r)
	case strings.HasSuffix(path, "/elsewhere"):
		http.Redirect(w, r, "https://example.com/", http.StatusFound)
	case strings.HasSuffix(path, "/teapot"):
		http.Error(w, "short and stout", http.StatusTeapot)
	default:
		e.tell(w, r)
	}
}

// tell answers with the request that arrived.
func (e *extension) tell(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	seen := map[string]any{"kind": "Thing", "apiVersion": "ext.example.com/v1", "uri": r.RequestURI, "method": r.Method, "body": string(body)}
	for _, name := range []string{"X-Remote-User", "X-Remote-Uid", "X-Remote-Group", "X-Remote-Extra-Scopes", "Authorization", "Impersonate-User", "Impersonate-Extra-Scopes", "Audit-Id"} {
		if values := r.Header.Values(name); values != nil {
			seen[name] = strings.Join(values, " ")
		}
	}
	_ = json.NewEncoder(w).Encode(seen)
}

func (e *extension) watch(w http.ResponseWriter, r *http.Request) {
	for i := 0; ; i++ {
		fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Thing","apiVersion":"ext.example.com/v1","metadata":{"name":"t%d"}}}`+"\n", i)
		w.(http.Flusher).Flush()
		select {
		case <-e.more:
		case <-r.Context().Done():
			return
		}
	}
}

// echo upgrades to a protocol that repeats each line.
func (e *extension) echo(w http.ResponseWriter) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(conn, rw)
}

// object is the APIService of the extension.
func (e *extension) object(more string) string {
	u, _ := url.Parse(e.http.URL)
	ca, _ := json.Marshal(e.ca)
	return `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.ext.example.com"},"spec":{
		"group":"ext.example.com","version":"v1","groupPriorityMinimum":900,"versionPriority":15,
		"caBundle":` + string(ca) + `,"service":{"namespace":"demo","name":"ext","port":` + u.Port() + `}` + more + `}}`
}

const (
	demoServices = "/api/v1/namespaces/demo/services"
	extObject    = apiServices + "/v1.ext.example.com"
	extService   = `{"kind":"Service","apiVersion":"v1","metadata":{"name":"ext"},"spec":{"type":"ExternalName","externalName":"localhost"}}`
)

// believed waits until all servers have published their authorities and returns them.
func believed(t *testing.T, servers []*Server) *x509.CertPool {
	t.Helper()
	var cm corev1.ConfigMap
	apitest.Eventually(t, "all authorities are published", func() bool {
		code, _, body := apitest.Do(t, apitest.Admin(t, servers[0]), "GET", servers[0].URL()+"/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "")
		if code != http.StatusOK {
			return false
		}
		cm = corev1.ConfigMap{}
		if err := json.Unmarshal([]byte(body), &cm); err != nil {
			t.Fatal(err)
		}
		return strings.Count(cm.Data["requestheader-client-ca-file"], "BEGIN") == len(servers) &&
			strings.Count(cm.Data["client-ca-file"], "BEGIN") == len(servers)
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(cm.Data["requestheader-client-ca-file"]))
	delete(cm.Data, "requestheader-client-ca-file")
	delete(cm.Data, "client-ca-file")
	if diff := cmp.Diff(map[string]string{
		"requestheader-allowed-names":        `["front-proxy-client"]`,
		"requestheader-username-headers":     `["X-Remote-User"]`,
		"requestheader-uid-headers":          `["X-Remote-Uid"]`,
		"requestheader-group-headers":        `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}, cm.Data); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	return pool
}

// condition waits for a reason of Available and returns the message.
func (c client) condition(name, reason string) string {
	c.t.Helper()
	message, last := "", ""
	apitest.Eventually(c.t, name+" is "+reason, func() bool {
		s := c.service(name)
		if s == nil {
			return false
		}
		cond := helper.GetAPIServiceConditionByType(s, "Available")
		if cond == nil {
			return false
		}
		if now := cond.Reason + ": " + cond.Message; now != last {
			last = now
			c.t.Log(now)
		}
		message = cond.Message
		return cond.Reason == reason && (cond.Status == "True") == (reason == "Passed" || reason == "Local")
	})
	return message
}

func TestExtensionServer(t *testing.T) {
	replicas(t, func(t *testing.T, servers []*Server) {
		e := startExtension(t, believed(t, servers))
		first, last := clientOf(t, servers[0]), clientOf(t, servers[len(servers)-1])
		first.do("POST", "/api/v1/namespaces", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"demo"}}`, 201)

		first.do("POST", apiServices, e.object(""), 201)
		want := `service/ext in "demo" is not present`
		if got := first.condition("v1.ext.example.com", "ServiceNotFound"); got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		for _, c := range []client{first, last} { // either may have written the condition
			apitest.Eventually(t, "the server knows of it", func() bool {
				code, _, _ := apitest.Do(t, c.http, "GET", c.url+extensionAPI, "")
				return code != http.StatusNotFound
			})
			if got := c.do("GET", extensionAPI+"/namespaces/demo/things", "", 503); got != "service unavailable\n" {
				t.Errorf("while away: %q", got)
			}
		}

		first.do("POST", demoServices, extService, 201)
		if got := last.condition("v1.ext.example.com", "Passed"); got != "all checks passed" {
			t.Errorf("message %q", got)
		}
		for _, c := range []client{first, last} {
			apitest.Eventually(t, "requests are handed on", func() bool {
				code, _, _ := apitest.Do(t, c.http, "GET", c.url+extensionAPI, "")
				return code == http.StatusOK
			})
			c.handedOn(t)
			c.do("GET", "/apis/ext.example.com/v2/things", "", 404)
			c.watched(t, e)
			c.upgraded(t)
		}

		for _, c := range []client{first, last} {
			c.discovered(t)
			c.documented(t)
		}

		// A changed Service is checked at once, so that the test need not wait for the next check.
		e.http.Close()
		first.do("PUT", demoServices+"/ext", strings.Replace(extService, `"name":"ext"`, `"name":"ext","labels":{"a":"b"}`, 1), 200)
		if got := last.condition("v1.ext.example.com", "FailedDiscoveryCheck"); !strings.Contains(got, "failing or missing response from https://localhost:") {
			t.Errorf("message %q", got)
		}
		apitest.Eventually(t, "it is away", func() bool {
			code, _, _ := apitest.Do(t, first.http, "GET", first.url+extensionAPI, "")
			return code == http.StatusServiceUnavailable
		})
		last.do("DELETE", extObject, "", 200)
		apitest.Eventually(t, "its paths are gone", func() bool {
			code, _, _ := apitest.Do(t, first.http, "GET", first.url+extensionAPI, "")
			return code == http.StatusNotFound
		})
		first.do("GET", "/openapi/v3"+extensionAPI, "", 404)
		if index := first.do("GET", "/openapi/v3", "", 200); strings.Contains(index, "ext.example.com") {
			t.Error("its documents are still in the index")
		}
	})
}

// handedOn checks the requests that the extension server gets.
func (c client) handedOn(t *testing.T) {
	t.Helper()
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		want                     map[string]string
	}{
		{"a user of this server", "GET", "/namespaces/demo/things/a?x=1", "", nil, 200, map[string]string{
			"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters system:authenticated",
			"uri": extensionAPI + "/namespaces/demo/things/a?x=1", "method": "GET"}},
		{"a body", "POST", "/namespaces/demo/things", `{"a":1}`, nil, 200, map[string]string{"body": `{"a":1}`, "method": "POST"}},
		{"headers that are only this server's to give", "GET", "/things", "", []string{
			"X-Remote-User", "forged", "X-Remote-Group", "forged", "X-Remote-Uid", "forged", "X-Remote-Extra-Scopes", "forged"}, 200,
			map[string]string{"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters system:authenticated", "X-Remote-Uid": "", "X-Remote-Extra-Scopes": ""}},
		{"credentials stay here", "GET", "/things", "", []string{"Authorization", "Basic c2VjcmV0"}, 200, map[string]string{"Authorization": ""}},
		{"somebody who is impersonated", "GET", "/things", "", []string{
			"Impersonate-User", "jane", "Impersonate-Group", "system:masters", "Impersonate-Uid", "7", "Impersonate-Extra-Scopes", "one"}, 200,
			map[string]string{"X-Remote-User": "jane", "X-Remote-Group": "system:masters system:authenticated", "X-Remote-Uid": "7",
				"X-Remote-Extra-Scopes": "one", "Impersonate-User": "", "Impersonate-Extra-Scopes": ""}},
		{"the id of the request", "GET", "/things", "", []string{"Audit-Id", "mine"}, 200, map[string]string{"Audit-Id": "mine"}},
		{"somebody who may not", "GET", "/things", "", []string{"Impersonate-User", "jane"}, 403, nil},
		{"an error of its own", "GET", "/teapot", "", nil, 418, nil},
		{"a redirect", "GET", "/elsewhere", "", nil, 502, nil},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, c.url+extensionAPI+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(test.headers); i += 2 {
			r.Header.Set(test.headers[i], test.headers[i+1])
		}
		answer, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != test.code {
			t.Errorf("%s: status %d, %v: %s", test.name, answer.StatusCode, err, body)
			continue
		}
		var got map[string]string
		if test.want != nil {
			if err := json.Unmarshal(body, &got); err != nil {
				t.Errorf("%s: %v: %s", test.name, err, body)
			}
		}
		for key, want := range test.want {
			if got[key] != want {
				t.Errorf("%s: %s is %q, want %q", test.name, key, got[key], want)
			}
		}
	}
}

// discovered checks that discovery has the extension's resources.
func (c client) discovered(t *testing.T) {
	t.Helper()
	api := clientdiscovery.NewDiscoveryClientForConfigOrDie(c.config)
	classic := clientdiscovery.NewDiscoveryClientForConfigOrDie(c.config)
	classic.UseLegacyDiscovery = true
	apitest.Eventually(t, "the extension's resources are discovered", func() bool {
		for _, api := range []*clientdiscovery.DiscoveryClient{api, classic} {
			_, lists, err := api.ServerGroupsAndResources()
			if err != nil || !slices.ContainsFunc(lists, func(l *metav1.APIResourceList) bool {
				return l.GroupVersion == "ext.example.com/v1" && len(l.APIResources) == 1 && l.APIResources[0].Kind == "Thing"
			}) {
				return false
			}
		}
		return true
	})
}

// documented checks that OpenAPI has the extension's schemas, and that the extension cannot replace
// the documents of this server's own groups.
func (c client) documented(t *testing.T) {
	t.Helper()
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	at := ""
	apitest.Eventually(t, "the extension's document is in the index", func() bool { // it is asked for after the resources
		index.Paths = nil
		if err := json.Unmarshal([]byte(c.do("GET", "/openapi/v3", "", 200)), &index); err != nil {
			t.Fatal(err)
		}
		at = index.Paths["apis/ext.example.com/v1"].ServerRelativeURL
		return at != ""
	})
	if at != "/openapi/v3/apis/ext.example.com/v1?hash=1" {
		t.Errorf("in the index: %q", at)
	}
	if body := c.do("GET", at, "", 200); !strings.Contains(body, `"title":"extension","version":"1"`) {
		t.Errorf("document: %s", body)
	}
	if own := index.Paths["apis/apps/v1"].ServerRelativeURL; own == "" || strings.Contains(own, "forged") {
		t.Errorf("of this server in the index: %q", own)
	}
}

// watched checks that each event of a watch arrives before the next is sent.
func (c client) watched(t *testing.T, e *extension) {
	t.Helper()
	answer, err := c.http.Get(c.url + extensionAPI + "/things?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for i := range 3 {
		if !lines.Scan() || !strings.Contains(lines.Text(), fmt.Sprintf(`"name":"t%d"`, i)) {
			t.Fatalf("event %d: %q, %v", i, lines.Text(), lines.Err())
		}
		e.more <- struct{}{}
	}
}

// upgraded checks that a connection can be upgraded to another protocol. It leaves the connection
// open, so that stopping the server has to end it.
func (c client) upgraded(t *testing.T) {
	t.Helper()
	config, err := clientrest.TLSConfigFor(c.config)
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"http/1.1"}
	u, _ := url.Parse(c.url)
	conn, err := tls.Dial("tcp", u.Host, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET %s/things/a/exec HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", extensionAPI, u.Host)
	lines := bufio.NewReader(conn)
	answer, err := http.ReadResponse(lines, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %+v, %v", answer, err)
	}
	for _, line := range []string{"one\n", "two\n"} {
		fmt.Fprint(conn, line)
		if got, err := lines.ReadString('\n'); got != line {
			t.Fatalf("echo of %q is %q, %v", line, got, err)
		}
	}
}

// TestExtensionServerConditions wants upstream's reasons and messages for the condition Available
// (kube-aggregator/pkg/controllers/status/remote).
func TestExtensionServerConditions(t *testing.T) {
	s := start(t, Config{})
	c := clientOf(t, s)
	e := startExtension(t, believed(t, []*Server{s}))
	u, _ := url.Parse(e.http.URL)
	c.do("POST", "/api/v1/namespaces", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"demo"}}`, 201)
	c.do("POST", apiServices, e.object(""), 201)
	service := func(port string) string {
		return `{"kind":"Service","apiVersion":"v1","metadata":{"name":"ext"},"spec":{"ports":[{"name":"api","port":` + port + `}]}}`
	}
	const endpoints, endpointSlices = "/api/v1/namespaces/demo/endpoints", "/apis/discovery.k8s.io/v1/namespaces/demo/endpointslices"
	for _, step := range []struct {
		name, method, path, body string
		code                     int
		reason, message          string
	}{
		{"another port", "POST", demoServices, service("1"), 201,
			"ServicePortError", `service/ext in "demo" is not listening on port ` + u.Port()},
		{"no endpoints", "PUT", demoServices + "/ext", service(u.Port()), 200,
			"EndpointsNotFound", `cannot find endpointslices for service/ext in "demo"`},
		{"endpoints that are not ready", "POST", endpoints, `{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"ext"},
			"subsets":[{"notReadyAddresses":[{"ip":"192.0.2.1"}],"ports":[{"name":"api","port":1}]}]}`, 201,
			"MissingEndpoints", `endpointslices for service/ext in "demo" have no addresses with port name "api"`},
		{"no Endpoints", "DELETE", endpoints + "/ext", "", 200,
			"EndpointsNotFound", `cannot find endpointslices for service/ext in "demo"`},
		{"a slice of another port", "POST", endpointSlices, `{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",
			"metadata":{"name":"ext-1","labels":{"kubernetes.io/service-name":"ext"}},"addressType":"IPv4",
			"ports":[{"name":"other","port":1}],"endpoints":[{"addresses":["192.0.2.1"]}]}`, 201,
			"MissingEndpoints", `endpointslices for service/ext in "demo" have no addresses with port name "api"`},
		{"no Service", "DELETE", demoServices + "/ext", "", 200,
			"ServiceNotFound", `service/ext in "demo" is not present`},
		{"an external name", "POST", demoServices, extService, 201, "Passed", "all checks passed"},
	} {
		c.do(step.method, step.path, step.body, step.code)
		if got := c.condition("v1.ext.example.com", step.reason); got != step.message {
			t.Errorf("%s: message %q, want %q", step.name, got, step.message)
		}
	}

	// A server without a certificate of the bundle is not available, and a request that reaches it all the same, before the
	// condition says so, is told why it fails. The status written here is that moment, as often as it takes to meet it.
	_, other := certificateOf(t, "ext.demo.svc")
	e.ca = other
	object := strings.Replace(e.object(""), `"name":"v1.ext.example.com"`, `"name":"v1.ext.example.com","resourceVersion":"`+c.service("v1.ext.example.com").ResourceVersion+`"`, 1)
	c.do("PUT", extObject, object, 200)
	const unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
	if got := c.condition("v1.ext.example.com", "FailedDiscoveryCheck"); !strings.Contains(got, unknown) {
		t.Errorf("of the new bundle: %q", got)
	}
	apitest.Eventually(t, "the new bundle counts", func() bool {
		patch, err := http.NewRequestWithContext(t.Context(), "PATCH", c.url+extObject+"/status",
			strings.NewReader(`{"status":{"conditions":[{"type":"Available","status":"True","reason":"Passed","message":"by hand"}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		patch.Header.Set("Content-Type", "application/merge-patch+json")
		if code, _, body := apitest.Send(t, c.http, patch); code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		_, _, body := apitest.Do(t, c.http, "GET", c.url+extensionAPI+"/things", "")
		return strings.Contains(body, "error trying to reach service: "+unknown)
	})

	// An APIService with a Service takes precedence over a group version that is served here.
	c.do("DELETE", apiServices+"/v1.policy", "", 200)
	c.do("POST", apiServices, strings.ReplaceAll(e.object(""), "ext.example.com", "policy"), 201)
	apitest.Eventually(t, "it is served there", func() bool {
		code, _, _ := apitest.Do(t, c.http, "GET", c.url+"/apis/policy/v1/poddisruptionbudgets", "")
		return code == http.StatusServiceUnavailable
	})
	c.do("DELETE", apiServices+"/v1.policy", "", 200)
	apitest.Eventually(t, "it is served here again", func() bool {
		code, _, _ := apitest.Do(t, c.http, "GET", c.url+"/apis/policy/v1/poddisruptionbudgets", "")
		return code == http.StatusOK
	})
}

// TestExtensionServerNamespaces: a namespace is removed only after an extension server's objects in
// it, and is kept while the extension server cannot be reached.
func TestExtensionServerNamespaces(t *testing.T) {
	s := start(t, Config{Controllers: []string{"namespace"}})
	c := clientOf(t, s)
	e := startExtension(t, believed(t, []*Server{s}))
	c.do("POST", "/api/v1/namespaces", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"demo"}}`, 201)
	c.do("POST", demoServices, extService, 201)
	c.do("POST", apiServices, e.object(""), 201)
	c.condition("v1.ext.example.com", "Passed")
	c.discovered(t)

	c.do("POST", "/api/v1/namespaces", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"full"}}`, 201)
	c.do("DELETE", "/api/v1/namespaces/full", "", 200)
	apitest.Eventually(t, "the namespace is deleted", func() bool {
		code, _, _ := apitest.Do(t, c.http, "GET", c.url+"/api/v1/namespaces/full", "")
		return code == http.StatusNotFound
	})
	if !e.emptied.Load() {
		t.Error("the extension server was not asked to delete what is in the namespace")
	}

	e.http.Close()
	c.do("PUT", demoServices+"/ext", strings.Replace(extService, `"name":"ext"`, `"name":"ext","labels":{"a":"b"}`, 1), 200)
	c.condition("v1.ext.example.com", "FailedDiscoveryCheck")
	apitest.Eventually(t, "its discovery is stale", func() bool {
		return s.extensions.Discovered().Versions[0].Discovery.Freshness == apidiscovery.DiscoveryFreshnessStale
	})
	c.do("POST", "/api/v1/namespaces", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"held"}}`, 201)
	c.do("DELETE", "/api/v1/namespaces/held", "", 200)
	apitest.Eventually(t, "the namespace says why it is held", func() bool {
		return strings.Contains(c.do("GET", "/api/v1/namespaces/held", "", 200), `"reason":"DiscoveryFailed"`)
	})
	c.do("DELETE", extObject, "", 200)
	apitest.Eventually(t, "the namespace is deleted", func() bool {
		code, _, _ := apitest.Do(t, c.http, "GET", c.url+"/api/v1/namespaces/held", "")
		return code == http.StatusNotFound
	})
}
