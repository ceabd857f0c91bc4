package discovery_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	clientdiscovery "k8s.io/client-go/discovery"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/discovery"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func serve(t testing.TB) (*httptest.Server, *kind.Registry) {
	kinds := kind.NewRegistry(builtin.Priorities())
	kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
	server := httptest.NewServer(discovery.New(kinds, aggregator.New(nil, nil, nil), "/healthz"))
	t.Cleanup(server.Close)
	return server, kinds
}

func get(t testing.TB, server *httptest.Server, path string, header ...string) (*http.Response, string) {
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
	return resp, string(body)
}

// TestHashes compares with hashes that a kube-apiserver has answered.
func TestHashes(t *testing.T) {
	server, _ := serve(t)
	for path, want := range map[string]map[string]string{
		"/api/v1":                {"configmaps": "qFsyl6wFWjQ=", "pods": "xPOwRZ+Yhw8=", "events": "r2yiGXH7wu8=", "namespaces": "Q3oi5N2YM8M=", "pods/status": ""},
		"/apis/apps/v1":          {"deployments": "8aSe+NMegvE="},
		"/apis/events.k8s.io/v1": {"events": "r2yiGXH7wu8="},
		"/apis/autoscaling/v1":   {"horizontalpodautoscalers": "qwQve8ut294="},
	} {
		_, body := get(t, server, path)
		var list v1.APIResourceList
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, r := range list.APIResources {
			if _, ok := want[r.Name]; ok {
				got[r.Name] = r.StorageVersionHash
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestDocuments(t *testing.T) {
	server, _ := serve(t)
	address := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct{ path, want string }{
		{"/api", `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"` + address + `"}]}`},
		{"/apis/autoscaling", `{"kind":"APIGroup","apiVersion":"v1","name":"autoscaling","versions":[{"groupVersion":"autoscaling/v2","version":"v2"},{"groupVersion":"autoscaling/v1","version":"v1"}],"preferredVersion":{"groupVersion":"autoscaling/v2","version":"v2"}}`},
		{"/apis/batch/v1/", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"batch/v1","resources":[` +
			`{"name":"cronjobs","singularName":"cronjob","namespaced":true,"kind":"CronJob","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["cj"],"categories":["all"],"storageVersionHash":"sd5LIXh4Fjs="},` +
			`{"name":"cronjobs/status","singularName":"","namespaced":true,"kind":"CronJob","verbs":["get","patch","update"]},` +
			`{"name":"jobs","singularName":"job","namespaced":true,"kind":"Job","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"categories":["all"],"storageVersionHash":"mudhfqk/qZY="},` +
			`{"name":"jobs/status","singularName":"","namespaced":true,"kind":"Job","verbs":["get","patch","update"]}]}`},
	} {
		resp, body := get(t, server, c.path)
		if diff := cmp.Diff(c.want, strings.TrimSuffix(body, "\n")); diff != "" || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s (-want +got):\n%s", c.path, resp.Header.Get("Content-Type"), diff)
		}
	}
}

func TestPaths(t *testing.T) {
	server, _ := serve(t)
	_, body := get(t, server, "/")
	var paths v1.RootPaths
	if err := json.Unmarshal([]byte(body), &paths); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz"} {
		if !slices.Contains(paths.Paths, want) {
			t.Errorf("%s is missing in %v", want, paths.Paths)
		}
	}
	if !slices.IsSorted(paths.Paths) {
		t.Errorf("not sorted: %v", paths.Paths)
	}
}

func TestErrors(t *testing.T) {
	server, _ := serve(t)
	for _, c := range []struct {
		path, accept string
		code         int
		reason       v1.StatusReason
	}{
		{"/apis/apps/v9", "", 404, v1.StatusReasonNotFound},
		{"/api/v2", "", 404, v1.StatusReasonNotFound},
		{"/apis", "image/png", 406, v1.StatusReasonNotAcceptable},
	} {
		resp, body := get(t, server, c.path, "Accept", c.accept)
		var status v1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Fatalf("%s: %v: %s", c.path, err, body)
		}
		if resp.StatusCode != c.code || status.Reason != c.reason || status.Kind != "Status" {
			t.Errorf("%s: %d %s, want %d %s", c.path, resp.StatusCode, body, c.code, c.reason)
		}
	}
}

// A group that is not served is no part of the API: upstream answers in text.
func TestUnknownGroup(t *testing.T) {
	server, _ := serve(t)
	for _, path := range []string{"/apis/nonsense.example.com", "/apis/nonsense.example.com/v1", "/apis//"} {
		resp, body := get(t, server, path)
		if resp.StatusCode != 404 || body != "404 page not found\n" || resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %s %v", path, resp.StatusCode, body, resp.Header)
		}
	}
}

// TestRouted compares with upstream, where /apis and /apis/GROUP do not go through the
// router that looks at methods and media types.
func TestRouted(t *testing.T) {
	server, _ := serve(t)
	for _, c := range []struct {
		method, path, contentType, accept string
		code                              int
		message                           string
	}{
		{"POST", "/api", "", "", 405, "the server does not allow this method on the requested resource"},
		{"HEAD", "/api/v1", "", "", 405, ""},
		{"OPTIONS", "/apis/apps/v1", "", "", 405, "the server does not allow this method on the requested resource"},
		{"POST", "/apis", "", "", 200, ""},
		{"HEAD", "/apis", "", "", 200, ""},
		{"OPTIONS", "/apis/apps", "", "", 200, ""},
		{"GET", "/api", "", "text/html", 406, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"GET", "/apis/apps/v1", "", "application/*", 406, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"GET", "/api/v1", "text/plain", "", 406, "406: Not Acceptable\n\nAvailable representations: "},
		{"GET", "/api/v1", "application/json; charset=utf-8", "", 200, ""},
		{"GET", "/apis", "text/plain", "application/*", 200, ""},
		{"GET", "/apis", "", "text/html", 406, "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"GET", "/api/", "", aggregated, 200, ""},
		{"GET", "/apis/", "", aggregated, 406, "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"GET", "/api/nope", "", "text/html", 404, "the server could not find the requested resource"},
	} {
		req := httptest.NewRequest(c.method, c.path, nil)
		req.Header.Set("Content-Type", c.contentType)
		req.Header.Set("Accept", c.accept)
		answer := httptest.NewRecorder()
		server.Config.Handler.ServeHTTP(answer, req)
		var status v1.Status
		if c.code != 200 {
			if err := json.Unmarshal(answer.Body.Bytes(), &status); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
		}
		if answer.Code != c.code || c.method != "HEAD" && status.Message != c.message {
			t.Errorf("%+v: %d %s", c, answer.Code, answer.Body)
		}
	}
}

func TestAggregated(t *testing.T) {
	server, kinds := serve(t)
	resp, body := get(t, server, "/apis", "Accept", aggregated)
	if got := resp.Header.Get("Content-Type"); got != aggregated {
		t.Errorf("Content-Type %q", got)
	}
	if resp.Header.Get("Vary") != "Accept" || resp.Header.Get("Cache-Control") != "public" {
		t.Errorf("headers %v", resp.Header)
	}
	want := `"resources":[{"resource":"replicasets"`
	if !strings.Contains(body, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"apiregistration.k8s.io"},`) {
		t.Errorf("begins with %.200s, want %s", body, want)
	}
	scale := `{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]}`
	if !strings.Contains(body, scale) {
		t.Errorf("no %s in %s", scale, body)
	}
	tag := resp.Header.Get("ETag")
	if resp, body := get(t, server, "/apis", "Accept", aggregated, "If-None-Match", tag); resp.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("with its tag: %d %q", resp.StatusCode, body)
	}
	resp, _ = get(t, server, "/apis", "Accept", strings.Replace(aggregated, "v2", "v2beta1", 1))
	if resp.StatusCode != http.StatusNotAcceptable {
		t.Errorf("v2beta1: %d", resp.StatusCode)
	}
	kinds.Replace(nil, []*kind.Kind{{
		Group: "example.com", Resource: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
		Versions: []kind.Version{{Name: "v1alpha1"}, {Name: "v1"}}, Verbs: []string{"get"},
	}})
	resp, body = get(t, server, "/apis", "Accept", aggregated, "If-None-Match", tag)
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, `"widgets"`) || resp.Header.Get("ETag") == tag {
		t.Errorf("a new kind is not there: %d", resp.StatusCode)
	}
	if _, body := get(t, server, "/apis/example.com"); !strings.Contains(body, `"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}`) {
		t.Errorf("preferred version: %s", body)
	}
}

// TestClient asks with client-go, in both of its ways.
func TestClient(t *testing.T) {
	server, _ := serve(t)
	for _, legacy := range []bool{false, true} {
		client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&clientrest.Config{Host: server.URL})
		client.UseLegacyDiscovery = legacy
		groups, err := restmapper.GetAPIGroupResources(client)
		if err != nil {
			t.Fatal(err)
		}
		mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), client, nil)
		for short, want := range map[string]schema.GroupVersionResource{
			"cm":     {Version: "v1", Resource: "configmaps"},
			"events": {Version: "v1", Resource: "events"},
			"hpa":    {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
			"crd":    {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		} {
			got, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: short})
			if err != nil || got != want {
				t.Errorf("legacy=%v %s: %v %v, want %v", legacy, short, got, err, want)
			}
		}
		lists, err := client.ServerPreferredResources()
		if err != nil || len(lists) < 20 {
			t.Errorf("legacy=%v: %d group versions, %v", legacy, len(lists), err)
		}
	}
}

func TestEncodings(t *testing.T) {
	server, _ := serve(t)
	for accept, open := range map[string]string{
		"application/yaml":                                              "apiVersion: v1\ngroupVersion: apps/v1\nkind: APIResourceList\n",
		"application/vnd.kubernetes.protobuf":                           "k8s\x00",
		"application/json;pretty=1":                                     "{\n  \"kind\"",
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json": `{"kind":"APIResourceList"`,
	} {
		resp, body := get(t, server, "/apis/apps/v1", "Accept", accept)
		if resp.StatusCode != 200 || !strings.HasPrefix(body, open) {
			t.Errorf("%s: %d %.60q", accept, resp.StatusCode, body)
		}
	}
}

func BenchmarkAggregated(b *testing.B) {
	kinds := kind.NewRegistry(builtin.Priorities())
	kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
	d := discovery.New(kinds, aggregator.New(nil, nil, nil))
	req := httptest.NewRequest(http.MethodGet, "/apis", nil)
	req.Header.Set("Accept", aggregated)
	for b.Loop() {
		d.ServeHTTP(httptest.NewRecorder(), req)
	}
}

// TestCBOR has the documents that come in CBOR with upstream's feature gate CBORServingAndStorage, and
// those that do not: a group version of custom resources, and the list at /api.
func TestCBOR(t *testing.T) {
	kinds := kind.NewRegistry(builtin.Priorities())
	kinds.Replace(nil, append(builtin.Kinds(builtin.Options{}), &kind.Kind{
		Group: "example.com", Resource: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
		Versions: []kind.Version{{Name: "v1"}}, Verbs: []string{"get"}, Custom: &kind.CustomResource{},
	}))
	d := discovery.New(kinds, aggregator.New(nil, nil, nil))
	d.CBOR = true
	server := httptest.NewServer(d)
	defer server.Close()
	const cborMedia, list = "application/cbor", ", application/cbor"
	for _, path := range []string{"/api/v1", "/apis/apps/v1", "/apis/apiextensions.k8s.io/v1", "/apis/apiregistration.k8s.io/v1/"} {
		resp, body := get(t, server, path, "Accept", cborMedia)
		var got v1.APIResourceList
		if err := direct.Unmarshal([]byte(body), &got); err != nil || resp.Header.Get("Content-Type") != cborMedia || len(got.APIResources) == 0 {
			t.Errorf("%s: %d %v %v", path, resp.StatusCode, resp.Header, err)
		}
		if _, body := get(t, server, path, "Accept", "text/html"); !strings.Contains(body, list) {
			t.Errorf("%s: CBOR is not offered: %s", path, body)
		}
	}
	for path, kind := range map[string]string{"/apis": "APIGroupList", "/apis/apps": "APIGroup", "/apis/example.com": "APIGroup"} {
		resp, body := get(t, server, path, "Accept", cborMedia)
		got := map[string]any{}
		if err := direct.Unmarshal([]byte(body), &got); err != nil || resp.Header.Get("Content-Type") != cborMedia || got["kind"] != kind {
			t.Errorf("%s: %d %v %v %v", path, resp.StatusCode, resp.Header, got, err)
		}
	}
	for _, path := range []string{"/api", "/apis"} {
		accept := strings.Replace(aggregated, "application/json", cborMedia, 1)
		resp, body := get(t, server, path, "Accept", accept)
		got := map[string]any{}
		if err := direct.Unmarshal([]byte(body), &got); err != nil || resp.Header.Get("Content-Type") != accept || got["kind"] != "APIGroupDiscoveryList" {
			t.Errorf("%s: %d %v %v %v", path, resp.StatusCode, resp.Header, got, err)
		}
	}
	for _, path := range []string{"/api", "/apis/example.com/v1"} {
		if resp, body := get(t, server, path, "Accept", cborMedia); resp.StatusCode != http.StatusNotAcceptable || strings.Contains(body, list) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
		if resp, _ := get(t, server, path, "Accept", cborMedia+",application/json"); resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
}
