package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plinth-io/plinth/server/apitest"
)

// way is a request for an object, and the permissions that it needs: "VERB RESOURCE.GROUP/SUBRESOURCE",
// or "VERB /PATH".
type way struct {
	request string // METHOD PATH; a path without a slash is one in the namespace default of the core group
	media   string // of the body, or where there is none of the answer; "websocket": the request is an upgrade
	body    string // "as it is": the object that is there
	needs   []string
}

const (
	asProtobuf = "application/vnd.kubernetes.protobuf"
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asMetadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asList     = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	strategic  = "application/strategic-merge-patch+json"
	applied    = "application/apply-patch+yaml"
)

const (
	secretBody  = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"%s"},"stringData":{"k":"v"}}`
	widgetBody  = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"%s"},"spec":{"replicas":1}}`
	leaseBody   = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"%s"},"spec":{}}`
	scaleBody   = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"%s","namespace":"default"},"spec":{"replicas":1}}`
	deployment  = `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	withLabel   = `{"metadata":{"labels":{"a":"b"}}}`
	withLabels  = `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`
	nowhere     = "?labelSelector=nowhere%3Dtrue"
	initially   = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	apps        = "/apis/apps/v1/namespaces/default/deployments/d"
	widgetsPath = "/apis/example.com/v1/namespaces/default/widgets"
	leasesPath  = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	things      = extensionAPI + "/namespaces/default/things"
)

func need(needs ...string) []string { return needs }

// ways are all ways to read and write that differ in the form of the request.
var ways = []way{
	{"GET secrets/db", "", "", need("get secrets")},
	{"GET secrets/db", asProtobuf, "", need("get secrets")},
	{"GET secrets/db", asTable, "", need("get secrets")},
	{"GET secrets/db", asMetadata, "", need("get secrets")},
	{"GET secrets/db?watch=1", "", "", need("get secrets")}, // upstream answers with the object
	{"GET secrets", "", "", need("list secrets")},
	{"GET secrets", asProtobuf, "", need("list secrets")},
	{"GET secrets", asTable, "", need("list secrets")},
	{"GET secrets", asList, "", need("list secrets")},
	{"GET secrets?limit=1&watch=false", "", "", need("list secrets")},
	{"GET secrets?fieldSelector=metadata.name%3Ddb", "", "", need("list secrets")},
	{"GET secrets?resourceVersion=1&resourceVersionMatch=NotOlderThan", "", "", need("list secrets")},
	{"GET /api/v1/secrets", "", "", need("list secrets")},
	{"GET secrets?watch=1", "", "", need("watch secrets")},
	{"GET secrets?watch=true" + initially, "", "", need("watch secrets")},
	{"GET secrets?watch&fieldSelector=metadata.name%3Ddb", asProtobuf, "", need("watch secrets")},
	{"GET secrets?watch=1", asTable, "", need("watch secrets")},
	{"GET secrets?watch=1", "websocket", "", need("watch secrets")},
	{"GET /api/v1/secrets?watch=1", "", "", need("watch secrets")},
	{"GET /api/v1/watch/secrets", "", "", need("watch secrets")},
	{"GET /api/v1/watch/namespaces/default/secrets", "", "", need("watch secrets")},
	{"GET /api/v1/watch/namespaces/default/secrets", "websocket", "", need("watch secrets")},
	{"GET /api/v1/watch/namespaces/default/secrets/db", "", "", need("watch secrets")},
	{"POST secrets", "application/json", secretBody, need("create secrets")},
	{"POST secrets", asProtobuf, secretBody, need("create secrets")},
	{"POST secrets?dryRun=All", "application/yaml", secretBody, need("create secrets")},
	{"PUT secrets/db", "application/json", secretBody, need("update secrets")},
	{"PUT secrets/db", asProtobuf, secretBody, need("update secrets")},
	{"PUT secrets/db?dryRun=All", "application/json", secretBody, need("update secrets")},
	{"PATCH secrets/db", jsonPatch, withLabels, need("patch secrets")},
	{"PATCH secrets/db", mergePatch, withLabel, need("patch secrets")},
	{"PATCH secrets/db", strategic, withLabel, need("patch secrets")},
	{"PATCH secrets/db?fieldManager=m", applied, secretBody, need("patch secrets")},
	{"PATCH secrets/db?dryRun=All", mergePatch, withLabel, need("patch secrets")},
	{"PATCH secrets/new?fieldManager=m", applied, secretBody, need("patch secrets", "create secrets")},
	{"PATCH secrets/newer?fieldManager=m&dryRun=All", applied, secretBody, need("patch secrets", "create secrets")},
	{"DELETE secrets/db?dryRun=All", "", "", need("delete secrets")},
	{"DELETE secrets/db", "application/json", `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`, need("delete secrets")},
	{"DELETE secrets/spare", "", "", need("delete secrets")},
	{"DELETE secrets" + nowhere, "", "", need("deletecollection secrets")},
	{"DELETE secrets?dryRun=All", "", "", need("deletecollection secrets")},
	{"DELETE secrets?fieldSelector=metadata.name%3Ddb&dryRun=All", "", "", need("deletecollection secrets")},

	{"PUT " + leasesPath + "/new", "application/json", leaseBody, need("update leases.coordination.k8s.io", "create leases.coordination.k8s.io")},
	{"PUT " + leasesPath + "/newer?dryRun=All", "application/json", leaseBody, need("update leases.coordination.k8s.io", "create leases.coordination.k8s.io")},

	{"GET " + widgetsPath + "/w", "", "", need("get widgets.example.com")},
	{"GET " + widgetsPath + "/w", asTable, "", need("get widgets.example.com")},
	{"GET " + widgetsPath, "", "", need("list widgets.example.com")},
	{"GET " + widgetsPath + "?watch=1", "", "", need("watch widgets.example.com")},
	{"GET " + widgetsPath + "?watch=1", "websocket", "", need("watch widgets.example.com")},
	{"POST " + widgetsPath, "application/json", widgetBody, need("create widgets.example.com")},
	{"PUT " + widgetsPath + "/w", "application/json", "as it is", need("update widgets.example.com")},
	{"PATCH " + widgetsPath + "/w", jsonPatch, withLabels, need("patch widgets.example.com")},
	{"PATCH " + widgetsPath + "/w", mergePatch, withLabel, need("patch widgets.example.com")},
	{"PATCH " + widgetsPath + "/w?fieldManager=m&force=true", applied, widgetBody, need("patch widgets.example.com")},
	{"PATCH " + widgetsPath + "/new?fieldManager=m", applied, widgetBody, need("patch widgets.example.com", "create widgets.example.com")},
	{"GET " + widgetsPath + "/w/status", "", "", need("get widgets.example.com/status")},
	{"PATCH " + widgetsPath + "/w/status", mergePatch, `{"status":{"replicas":1}}`, need("patch widgets.example.com/status")},
	{"PATCH " + widgetsPath + "/w/status?fieldManager=s", applied, widgetBody, need("patch widgets.example.com/status")},
	{"GET " + widgetsPath + "/w/scale", "", "", need("get widgets.example.com/scale")},
	{"PUT " + widgetsPath + "/w/scale", "application/json", scaleBody, need("update widgets.example.com/scale")},
	{"PATCH " + widgetsPath + "/w/scale", mergePatch, `{"spec":{"replicas":2}}`, need("patch widgets.example.com/scale")},
	{"DELETE " + widgetsPath + "/w?dryRun=All", "", "", need("delete widgets.example.com")},
	{"DELETE " + widgetsPath + nowhere, "", "", need("deletecollection widgets.example.com")},

	{"GET " + apps + "/scale", "", "", need("get deployments.apps/scale")},
	{"PUT " + apps + "/scale", "application/json", scaleBody, need("update deployments.apps/scale")},
	{"PATCH " + apps + "/scale", strategic, `{"spec":{"replicas":2}}`, need("patch deployments.apps/scale")},
	{"PATCH " + apps + "/status", mergePatch, `{"status":{"replicas":2}}`, need("patch deployments.apps/status")},

	{"GET pods/p/log?container=c", "", "", need("get pods/log")},
	{"GET pods/p/exec?command=echo&stdout=1", "websocket", "", need("get pods/exec", "create pods/exec")},
	{"POST pods/p/exec?command=echo&stdout=1", "upgrade", "", need("create pods/exec")},
	{"GET pods/p/attach?stdout=1", "websocket", "", need("get pods/attach", "create pods/attach")},
	{"POST pods/p/attach?stdout=1", "upgrade", "", need("create pods/attach")},
	{"GET pods/p/portforward?ports=80", "websocket", "", need("get pods/portforward", "create pods/portforward")},
	{"POST pods/p/portforward", "upgrade", "", need("create pods/portforward")},
	{"GET pods/p/proxy/a/b?x=1", "", "", need("get pods/proxy")},
	{"POST pods/p/proxy/a", "", "x", need("create pods/proxy")},
	{"PUT pods/p/proxy/a", "", "x", need("update pods/proxy")},
	{"PATCH pods/p/proxy/a", "", "x", need("patch pods/proxy")},
	{"DELETE pods/p/proxy/a", "", "", need("delete pods/proxy")},
	{"GET pods/http:p:8080/proxy/", "", "", need("get pods/proxy")},
	{"GET services/s:web/proxy/a/b", "", "", need("get services/proxy")},
	{"POST services/s:web/proxy/a", "", "x", need("create services/proxy")},
	{"GET /api/v1/nodes/n/proxy/healthz", "", "", need("get nodes/proxy")},
	{"POST pods/p/eviction", "application/json", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"},"deleteOptions":{"dryRun":["All"]}}`, need("create pods/eviction")},
	{"POST pods/unbound/binding?dryRun=All", "application/json", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"unbound"},"target":{"kind":"Node","name":"n"}}`, need("create pods/binding")},
	{"POST bindings", "application/json", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"unbound"},"target":{"kind":"Node","name":"n"}}`, need("create bindings")},
	{"PATCH pods/p/ephemeralcontainers", strategic, `{"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}`, need("patch pods/ephemeralcontainers")},
	{"GET pods/p/status", "", "", need("get pods/status")},
	{"POST serviceaccounts/default/token", "application/json", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`, need("create serviceaccounts/token")},
	{"POST /apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"u","nonResourceAttributes":{"path":"/","verb":"get"}}}`, need("create subjectaccessreviews.authorization.k8s.io")},
	{"POST /apis/authentication.k8s.io/v1/tokenreviews", "application/json", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}}`, need("create tokenreviews.authentication.k8s.io")},

	{"GET " + things, "", "", need("list things.ext.example.com")},
	{"GET " + things + "/a", "", "", need("get things.ext.example.com")},
	{"GET " + things + "?watch=1", "", "", need("watch things.ext.example.com")},
	{"GET /apis/ext.example.com/v1/watch/namespaces/default/things", "", "", need("watch things.ext.example.com")},
	{"GET " + things + "/a/connect", "websocket", "", need("get things.ext.example.com/connect")},
	{"POST " + things, "application/json", "{}", need("create things.ext.example.com")},
	{"PUT " + things + "/a", "application/json", "{}", need("update things.ext.example.com")},
	{"PATCH " + things + "/a", mergePatch, "{}", need("patch things.ext.example.com")},
	{"PATCH " + things + "/a/status", applied, "{}", need("patch things.ext.example.com/status")},
	{"DELETE " + things + "/a", "", "", need("delete things.ext.example.com")},
	{"DELETE " + things, "", "", need("deletecollection things.ext.example.com")},

	{"GET /metrics", "", "", need("get /metrics")},
	{"POST /metrics", "", "", need("post /metrics")},
}

// TestWays asks in each way as a user who has exactly the permissions that it needs, and as users
// who have every permission but one of these. Those are refused, and nothing has happened then:
// no object has changed, and no node, pod or extension server was asked.
func TestWays(t *testing.T) {
	w := openWays(t)
	for i, way := range ways {
		t.Run(strings.ReplaceAll(way.request, "/", "|")+" "+path.Base(way.media), func(t *testing.T) {
			before := w.state(t)
			for j, permission := range way.needs {
				user := fmt.Sprintf("but-%d-%d", i, j)
				w.allow(t, user, w.allBut(permission))
				code, body := w.send(t, way, user)
				words := fmt.Sprintf("User %q cannot %s", user, inWords(permission))
				if way.media == "websocket" && j == 1 { // upstream gives no reason (kubernetes/pkg/registry/core/pod/rest/authorize.go)
					words = `pods "p" is forbidden: `
				}
				if code != 403 || !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), words) {
					t.Errorf("without %s: %d %s, want %s", permission, code, body, words)
				}
			}
			if after := w.state(t); after != before {
				t.Errorf("a refused request has changed something:\n%s\n%s", before, after)
			}
			user := fmt.Sprintf("only-%d", i)
			w.allow(t, user, rulesFor(way.needs))
			if code, body := w.send(t, way, user); code >= 400 {
				t.Errorf("with %v alone: %d %s", way.needs, code, body)
			}
		})
	}
}

// inWords is how upstream's errors name a permission.
func inWords(permission string) string {
	verb, what, _ := strings.Cut(permission, " ")
	if strings.HasPrefix(what, "/") {
		return fmt.Sprintf("%s path %q", verb, what)
	}
	whole, sub, ok := strings.Cut(what, "/")
	resource := schema.ParseGroupResource(whole)
	if ok {
		resource.Resource += "/" + sub
	}
	return fmt.Sprintf("%s resource %q in API group %q", verb, resource.Resource, resource.Group)
}

// walked is a server with what the ways lead to.
type walked struct {
	*reached
	asked atomic.Int64 // requests that a node, a pod and the extension server got
}

func openWays(t *testing.T) *walked {
	t.Helper()
	w := &walked{reached: startReached(t, Config{Dial: (&net.Dialer{}).DialContext})}
	p := &parties{server: w.Server}
	p.fill(t)
	e := startExtension(t, believed(t, []*Server{w.Server}))
	for _, s := range []*httptest.Server{e.http, w.kubelet.Server, w.kubelet.Pods} {
		next := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, extensionAPI) || strings.Contains(r.URL.Path, "/things") {
				w.asked.Add(1) // and not for the checks whether the extension server is there
			}
			next.ServeHTTP(rw, r)
		})
	}
	c := clientOf(t, w.Server)
	for _, object := range [][2]string{
		{"/api/v1/namespaces", `{"metadata":{"name":"demo"}}`},
		{demoServices, extService},
		{apiServices, e.object("")},
		{"/api/v1/namespaces/default/secrets", `{"metadata":{"name":"db"}}`},
		{"/api/v1/namespaces/default/secrets", `{"metadata":{"name":"spare"}}`},
		{"/api/v1/namespaces/default/pods", `{"metadata":{"name":"unbound"},"spec":{"containers":[{"name":"c","image":"i"}]}}`},
		{"/apis/apps/v1/namespaces/default/deployments", deployment},
		{widgetsPath, fmt.Sprintf(widgetBody, "w")},
	} {
		c.do("POST", object[0], object[1], 201)
	}
	c.condition("v1.ext.example.com", "Passed")
	apitest.Eventually(t, "requests are handed on", func() bool {
		code, _, _ := apitest.Do(t, c.http, "GET", c.url+things, "")
		return code == http.StatusOK
	})
	return w
}

// state is what requests of the ways can change.
func (w *walked) state(t *testing.T) string {
	t.Helper()
	c := clientOf(t, w.Server)
	var all strings.Builder
	for _, path := range []string{
		"/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/pods", widgetsPath, leasesPath, apps,
	} {
		var list struct {
			Items    []struct{ Metadata versioned }
			Metadata versioned
		}
		must(t, json.Unmarshal([]byte(c.do("GET", path, "", 200)), &list))
		for _, item := range list.Items {
			fmt.Fprintf(&all, "%v ", item.Metadata)
		}
		if list.Items == nil {
			fmt.Fprintf(&all, "%v ", list.Metadata)
		}
	}
	fmt.Fprintf(&all, "and %d requests elsewhere", w.asked.Load())
	return all.String()
}

type versioned struct{ Name, ResourceVersion string }

// allow makes a user with these permissions and no others but those of everybody.
func (w *walked) allow(t *testing.T, user string, rules []policyRule) {
	t.Helper()
	text, err := json.Marshal(rules)
	must(t, err)
	c := clientOf(t, w.Server)
	rbac := "/apis/rbac.authorization.k8s.io/v1"
	c.do("POST", rbac+"/clusterroles", fmt.Sprintf(`{"metadata":{"name":%q},"rules":%s}`, user, text), 201)
	c.do("POST", rbac+"/clusterrolebindings", fmt.Sprintf(`{"metadata":{"name":%[1]q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%[1]q},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%[1]q}]}`, user), 201)
}

// send asks in a way, by HTTP/1.1, which upgrades need. It does not wait for the end of a watch.
func (w *walked) send(t *testing.T, way way, user string) (int, string) {
	t.Helper()
	method, target, _ := strings.Cut(way.request, " ")
	if !strings.HasPrefix(target, "/") {
		target = "/api/v1/namespaces/default/" + target
	}
	content := way.content(t, target)
	if way.body == "as it is" {
		content = []byte(clientOf(t, w.Server).do("GET", target, "", 200))
	}
	r, err := http.NewRequestWithContext(t.Context(), method, w.URL()+target, bytes.NewReader(content))
	must(t, err)
	way.setHeader(r.Header)
	certPEM, keyPEM, err := w.pki.Client(user, nil, time.Hour)
	must(t, err)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.RESTConfig().CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode < 400 && (resp.StatusCode == 101 || strings.Contains(target, "watch")) {
		return resp.StatusCode, ""
	}
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(text)
}

// content is the body, with the name of the object in it.
func (w way) content(t *testing.T, target string) []byte {
	t.Helper()
	if !strings.Contains(w.body, "%s") {
		return []byte(w.body)
	}
	u, err := url.Parse(target)
	must(t, err)
	name := path.Base(strings.TrimSuffix(strings.TrimSuffix(u.Path, "/status"), "/scale"))
	if strings.HasPrefix(w.request, "POST") {
		name = "made-" + strings.ReplaceAll(path.Base(w.media), ".", "-")
	}
	if w.media != asProtobuf {
		return fmt.Appendf(nil, w.body, name)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), asProtobuf)
	body, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
	must(t, err)
	return body
}

func (w way) setHeader(h http.Header) {
	switch {
	case w.media == "websocket":
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", "websocket")
		h.Set("Origin", "https://example.com")
		h.Set("Sec-WebSocket-Version", "13")
		h.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		if strings.Contains(w.request, "pods/p/portforward") {
			h.Set("Sec-WebSocket-Protocol", "SPDY/3.1+portforward.k8s.io")
		} else if strings.Contains(w.request, "pods/p/") {
			h.Set("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
		}
	case w.media == "upgrade":
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", "SPDY/3.1")
		h.Set("X-Stream-Protocol-Version", "v4.channel.k8s.io")
		if strings.Contains(w.request, "portforward") {
			h.Set("X-Stream-Protocol-Version", "portforward.k8s.io")
		}
	case w.body != "":
		h.Set("Content-Type", w.media)
	case w.media != "":
		h.Set("Accept", w.media)
	}
}

// allBut are rules for everything that the ways need, without one permission.
func (w *walked) allBut(permission string) (rules []policyRule) {
	all := map[string]bool{}
	for _, way := range ways {
		for _, p := range way.needs {
			verb, what, _ := strings.Cut(p, " ")
			all[verb+" "+what] = true
			if strings.HasPrefix(what, "/") {
				continue
			}
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "connect", "proxy"} {
				all[verb+" "+what] = true
			}
		}
	}
	delete(all, permission)
	var needs []string
	for p := range all {
		needs = append(needs, p)
	}
	slices.Sort(needs)
	return rulesFor(needs)
}

type policyRule struct {
	APIGroups       []string `json:"apiGroups,omitempty"`
	Resources       []string `json:"resources,omitempty"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	Verbs           []string `json:"verbs"`
}

func rulesFor(needs []string) (rules []policyRule) {
	for _, p := range needs {
		verb, what, _ := strings.Cut(p, " ")
		if strings.HasPrefix(what, "/") {
			rules = append(rules, policyRule{NonResourceURLs: []string{what}, Verbs: []string{verb}})
			continue
		}
		whole, sub, ok := strings.Cut(what, "/")
		resource := schema.ParseGroupResource(whole)
		if ok {
			resource.Resource += "/" + sub
		}
		rules = append(rules, policyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: []string{verb}})
	}
	return rules
}
