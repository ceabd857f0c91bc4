package openapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/openapi"
)

func serve(t testing.TB) (*httptest.Server, *kind.Registry) {
	kinds := kind.NewRegistry(builtin.Priorities())
	kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
	server := httptest.NewServer(openapi.New(kinds))
	server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(server.Close)
	return server, kinds
}

func get(t testing.TB, server *httptest.Server, path string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// TestIndexIsSentAnew has a client that got the index within the same second ask again:
// what has come since must not be kept from it.
func TestIndexIsSentAnew(t *testing.T) {
	server, _ := serve(t)
	for range 3 {
		resp, body := get(t, server, "/openapi/v3", "If-Modified-Since", time.Now().UTC().Format(http.TimeFormat))
		if resp.StatusCode != 200 || len(body) == 0 || resp.Header.Get("Last-Modified") == "" {
			t.Errorf("got %d %v", resp.StatusCode, resp.Header)
		}
	}
}

// urlOf takes a group version's URL out of the index.
func urlOf(t testing.TB, server *httptest.Server, path string) string {
	t.Helper()
	_, body := get(t, server, "/openapi/v3")
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(body, &index); err != nil {
		t.Fatal(err)
	}
	return index.Paths[path].ServerRelativeURL
}

// TestEveryKindValidates checks in every document what kubectl looks for: a PATCH of each
// kind that takes fieldValidation and dryRun, and a schema with the kind's name on it.
func TestEveryKindValidates(t *testing.T) {
	server, kinds := serve(t)
	client := openapi3.NewRoot(clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL}).OpenAPIV3())
	docs := map[schema.GroupVersion]*spec3.OpenAPI{}
	for _, k := range kinds.Set().Kinds {
		for _, v := range k.Versions {
			gv := k.GVK(v.Name).GroupVersion()
			if docs[gv] == nil {
				doc, err := client.GVSpec(gv)
				if err != nil {
					t.Fatalf("%s: %v", gv, err)
				}
				docs[gv] = doc
			}
			checkKind(t, docs[gv], k, v.Name)
		}
	}
	gvs, err := client.GroupVersions()
	if err != nil || len(gvs) != len(docs) {
		t.Errorf("index has %d group versions, want %d; %v", len(gvs), len(docs), err)
	}
}

func checkKind(t *testing.T, doc *spec3.OpenAPI, k *kind.Kind, version string) {
	t.Helper()
	gvk := k.GVK(version)
	verb := "patch"
	if k.Observed != nil {
		return // nothing is written
	}
	if k.Virtual != nil {
		verb = "post"
	}
	if parameters, ok := parametersOf(doc, verb, gvk); !ok {
		t.Errorf("%s: no %s", gvk, verb)
	} else {
		for _, want := range []string{"fieldValidation", "dryRun", "fieldManager"} {
			if !parameters[want] {
				t.Errorf("%s: %s has no parameter %s", gvk, verb, want)
			}
		}
	}
	for _, s := range doc.Components.Schemas {
		if namesKind(s.Extensions, gvk) {
			if metadata := s.Properties["metadata"]; metadata.AllOf == nil && metadata.Ref.String() == "" {
				t.Errorf("%s: schema has no metadata", gvk)
			}
			return
		}
	}
	t.Errorf("%s: no schema", gvk)
}

// parametersOf are the query parameters of an operation and of its path.
func parametersOf(doc *spec3.OpenAPI, action string, gvk schema.GroupVersionKind) (map[string]bool, bool) {
	for _, path := range doc.Paths.Paths {
		for _, op := range []*spec3.Operation{path.Patch, path.Post} {
			if op == nil || op.Extensions["x-kubernetes-action"] != action || !namesKind(op.Extensions, gvk) {
				continue
			}
			names := map[string]bool{}
			for _, p := range append(path.Parameters, op.Parameters...) {
				names[p.Name] = p.In == "query"
			}
			return names, true
		}
	}
	return nil, false
}

// namesKind looks at the extension that has one kind in operations and several in schemas.
func namesKind(e spec.Extensions, gvk schema.GroupVersionKind) bool {
	value := e["x-kubernetes-group-version-kind"]
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, v := range list {
		if m, ok := v.(map[string]any); ok && m["group"] == gvk.Group && m["version"] == gvk.Version && m["kind"] == gvk.Kind {
			return true
		}
	}
	return false
}

func TestPathsAndOperations(t *testing.T) {
	server, _ := serve(t)
	_, body := get(t, server, "/openapi/v3/apis/apps/v1")
	var doc spec3.OpenAPI
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	for path, ids := range map[string][]string{
		"/apis/apps/v1/deployments":                                      {"listAppsV1DeploymentForAllNamespaces"},
		"/apis/apps/v1/namespaces/{namespace}/deployments":               {"listAppsV1NamespacedDeployment", "createAppsV1NamespacedDeployment", "deleteAppsV1CollectionNamespacedDeployment"},
		"/apis/apps/v1/namespaces/{namespace}/deployments/{name}":        {"readAppsV1NamespacedDeployment", "replaceAppsV1NamespacedDeployment", "patchAppsV1NamespacedDeployment", "deleteAppsV1NamespacedDeployment"},
		"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale":  {"readAppsV1NamespacedDeploymentScale", "replaceAppsV1NamespacedDeploymentScale", "patchAppsV1NamespacedDeploymentScale"},
		"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status": {"readAppsV1NamespacedDeploymentStatus"},
	} {
		p := doc.Paths.Paths[path]
		if p == nil {
			t.Errorf("no path %s", path)
			continue
		}
		got := map[string]bool{}
		for _, op := range []*spec3.Operation{p.Get, p.Post, p.Put, p.Patch, p.Delete} {
			if op != nil {
				got[op.OperationId] = true
			}
		}
		for _, id := range ids {
			if !got[id] {
				t.Errorf("%s: no operation %s in %v", path, id, got)
			}
		}
	}
	scale := doc.Components.Schemas["io.k8s.api.autoscaling.v1.Scale"]
	if scale == nil {
		t.Error("no schema of Scale")
	}
	replicas := doc.Components.Schemas["io.k8s.api.apps.v1.DeploymentSpec"].Properties["replicas"]
	if !strings.HasPrefix(replicas.Description, "Number of desired pods.") {
		t.Errorf("replicas are described as %q", replicas.Description)
	}
}

func TestCaching(t *testing.T) {
	server, kinds := serve(t)
	url := urlOf(t, server, "apis/batch/v1")
	resp, _ := get(t, server, url)
	if got := resp.Header.Get("Cache-Control"); got != "public, immutable" || resp.Header.Get("Expires") == "" {
		t.Errorf("%s: Cache-Control %q", url, got)
	}
	tag := resp.Header.Get("ETag")
	if !strings.Contains(url, strings.Trim(tag, `"`)) {
		t.Errorf("ETag %s is not the hash of %s", tag, url)
	}
	if resp, body := get(t, server, url, "If-None-Match", tag); resp.StatusCode != http.StatusNotModified || len(body) > 0 {
		t.Errorf("with its tag: %d", resp.StatusCode)
	}
	resp, _ = get(t, server, "/openapi/v3/apis/batch/v1?hash=OLD")
	if resp.StatusCode != http.StatusMovedPermanently || resp.Header.Get("Location") != url {
		t.Errorf("with an old hash: %d %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	if resp, _ := get(t, server, "/openapi/v3/apis/batch/v1"); resp.Header.Get("Cache-Control") != "" {
		t.Errorf("without a hash: %v", resp.Header)
	}
	k := *kinds.Lookup("batch", "v1", "jobs")
	k.Verbs = []string{"get", "list"}
	kinds.Replace([]*kind.Kind{kinds.Lookup("batch", "v1", "jobs")}, []*kind.Kind{&k})
	if changed := urlOf(t, server, "apis/batch/v1"); changed == url {
		t.Error("the hash is the same after a change")
	}
	if _, body := get(t, server, "/openapi/v3/apis/batch/v1"); strings.Contains(string(body), "createBatchV1NamespacedJob") {
		t.Error("the document is the old one after a change")
	}
}

func TestProtobuf(t *testing.T) {
	server, _ := serve(t)
	const v3Type = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
	resp, body := get(t, server, "/openapi/v3/apis/policy/v1", "Accept", v3Type)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/com.github.proto-openapi.spec.v3.v1.0+protobuf" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	var v3 openapi_v3.Document
	if err := proto.Unmarshal(body, &v3); err != nil || v3.Info.Title != "Kubernetes" {
		t.Errorf("v3: %v %v", err, v3.Info)
	}
	const v2Type = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	resp, body = get(t, server, "/openapi/v2", "Accept", v2Type)
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	var v2 openapi_v2.Document
	if err := proto.Unmarshal(body, &v2); err != nil || len(v2.Definitions.AdditionalProperties) < 500 {
		t.Errorf("v2: %v", err)
	}
}

func TestV2(t *testing.T) {
	server, _ := serve(t)
	_, body := get(t, server, "/openapi/v2")
	var doc spec.Swagger
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Paths.Paths["/api/v1/namespaces/{namespace}/configmaps/{name}"].Patch == nil {
		t.Error("no PATCH of configmaps")
	}
	if _, ok := doc.Definitions["io.k8s.api.core.v1.ConfigMap"]; !ok {
		t.Error("no definition of ConfigMap")
	}
}

// The answers that are odd are upstream's.
func TestHeaders(t *testing.T) {
	server, _ := serve(t)
	const json, proto = "application/json", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	for _, c := range []struct {
		path, accept string
		code         int
		media, vary  string
		empty        bool
	}{
		{"/openapi/v3/apis/nonsense/v1", "", 404, "", "", true},
		{"/openapi/v3/", "", 404, "", "", true},
		{"/openapi/v3/api/v1/", "", 404, "", "", true},
		{"/openapi/v3/api/v1", "image/png", 406, "", "Accept", true},
		{"/openapi/v2", "application/yaml", 406, "", "Accept, Accept-Encoding", true},
		{"/openapi/v3", "image/png", 200, "text/plain; charset=utf-8", "", false},
		{"/openapi/v3/api/v1", "", 200, json, "Accept, Accept-Encoding", false},
		{"/openapi/v3/api/v1", proto, 200, proto, "Accept, Accept-Encoding", false},
		{"/openapi/v3/api/v1?hash=old", "", 301, json, "Accept", true},
		{"/openapi/v3/api/v1?hash=old", "image/png", 406, "", "Accept", true},
	} {
		req := httptest.NewRequest(http.MethodGet, c.path, nil)
		req.Header.Set("Accept", c.accept)
		answer := httptest.NewRecorder()
		server.Config.Handler.ServeHTTP(answer, req)
		media, vary := answer.Header().Get("Content-Type"), strings.Join(answer.Header().Values("Vary"), ", ")
		if answer.Code != c.code || media != c.media || vary != c.vary || (answer.Body.Len() == 0) != c.empty {
			t.Errorf("%s for %s: %d %s, Vary: %s, %.100s", c.path, c.accept, answer.Code, media, vary, answer.Body)
		}
	}
}

// BenchmarkFirst builds each document once; the memory that stays is reported.
func BenchmarkFirst(b *testing.B) {
	for _, path := range []string{"/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/policy/v1", "/openapi/v2"} {
		b.Run(strings.TrimPrefix(path, "/openapi/"), func(b *testing.B) {
			kinds := kind.NewRegistry(nil)
			kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
			req := httptest.NewRequest(http.MethodGet, path, nil)
			var keep []*openapi.OpenAPI
			before := heap()
			for b.Loop() {
				o := openapi.New(kinds)
				o.ServeHTTP(httptest.NewRecorder(), req)
				keep = append(keep, o)
			}
			b.ReportMetric(float64(heap()-before)/float64(len(keep)), "kept-B/op")
			runtime.KeepAlive(keep)
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
