package server

import (
	"archive/zip"
	"bytes"
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/plinth-io/plinth/server/apitest"
)

var update = flag.Bool("update", false, "write openapi/prebuilt.zip")

// TestPrebuiltDocuments holds the OpenAPI documents that are part of the program equal to those that a server
// with the default flags builds.
func TestPrebuiltDocuments(t *testing.T) {
	const file = "openapi/prebuilt.zip"
	s := start(t, Config{})
	var built bytes.Buffer
	if err := s.schemas.Prebuild(&built); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, built.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, got := filesOf(t, built.Bytes()), filesOf(t, stored)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is not what is built; run: go generate ./server/openapi", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is not built; run: go generate ./server/openapi", name)
	}
	if !strings.Contains(want["v3/api/v1.json"], "io.k8s.api.core.v1.ConfigMap") || len(want) < 90 {
		t.Errorf("%d files are built", len(want))
	}
}

// filesOf are the files of an archive by their names, each behind its comment, the hash of what it is made from.
func filesOf(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range files.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		found[f.Name] = f.Comment + "\n" + string(text)
	}
	return found
}

func TestMetrics(t *testing.T) {
	s := start(t, Config{})
	client := apitest.Admin(t, s)
	apitest.Do(t, client, "GET", s.URL()+"/api/v1/namespaces/default/podtemplates/none", "")
	apitest.Do(t, client, "GET", s.URL()+"/api/v1/made-up/by-a-client", "")
	_, _, text := apitest.Do(t, client, "GET", s.URL()+"/metrics", "")
	want := `apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="podtemplates",scope="resource",subresource="",verb="GET",version="v1"} 1`
	if !strings.Contains(text, want) {
		t.Errorf("no line %s in\n%s", want, text)
	}
	if strings.Contains(text, "made-up") {
		t.Error("a client's words are a label")
	}
}

// TestCBOR wants upstream's feature gate to switch CBOR on everywhere. Errors from before the verbs are
// JSON.
func TestCBOR(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.CBORServingAndStorage, true)
	s := start(t, Config{})
	admin, nobody := apitest.Admin(t, s), apitest.Anonymous(t, s)
	const cborMedia = "application/cbor"
	for _, c := range []struct {
		client      *http.Client
		path, media string
		code        int
	}{
		{admin, "/api/v1/namespaces/default", cborMedia, 200},
		{admin, "/apis/rbac.authorization.k8s.io/v1/clusterroles", cborMedia, 200},
		{admin, "/api/v1/namespaces/none", cborMedia, 404},
		{admin, "/api/v1", cborMedia, 200},
		{admin, "/apis/apps", cborMedia, 200},
		{admin, "/api", "application/json", 406},
		{nobody, "/api/v1/namespaces/default", "application/json", 403},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", cborMedia)
		code, header, _ := apitest.Send(t, c.client, req)
		if got := header.Get("Content-Type"); got != c.media || code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.path, code, got, c.code, c.media)
		}
	}
	if _, _, body := apitest.Do(t, admin, "GET", s.URL()+"/openapi/v3/apis/apps/v1", ""); !strings.Contains(body, `"application/apply-patch+cbor"`) {
		t.Error("OpenAPI does not have CBOR")
	}
}

func TestDeprecatedRequestsAreCounted(t *testing.T) {
	s := start(t, Config{
		ServeRemovedAPIs: []string{"batch/v1beta1", "extensions/v1beta1", "storage.k8s.io/v1alpha1"},
		RuntimeConfig:    map[string]string{"extensions/v1beta1/ingresses": "false"},
	})
	client := apitest.Admin(t, s)
	counted := func(line string) bool {
		_, _, body := apitest.Do(t, client, "GET", s.URL()+"/metrics", "")
		return strings.Contains(body, "\napiserver_requested_deprecated_apis{"+line+"} 1\n")
	}
	const components = `group="",removed_release="",resource="componentstatuses",subresource="",version="v1"`
	const scale = `group="extensions",removed_release="1.16",resource="deployments",subresource="scale",version="v1beta1"`
	for _, c := range []struct {
		method, path, line string
		counted            bool
	}{
		{"GET", "/api/v1/namespaces", components, false},
		{"POST", "/api/v1/componentstatuses", components, false}, // it has no such verb
		{"GET", "/api/v1/componentstatuses/nobody", components, true},
		{"GET", "/api/v1/componentstatuses", components, true},
		{"GET", "/apis/batch/v1/cronjobs", `group="batch",removed_release="1.25",resource="cronjobs",subresource="",version="v1beta1"`, false},
		{"GET", "/apis/batch/v1beta1/cronjobs", `group="batch",removed_release="1.25",resource="cronjobs",subresource="",version="v1beta1"`, true},
		{"GET", "/apis/extensions/v1beta1/namespaces/default/deployments/a", scale, false},
		{"GET", "/apis/extensions/v1beta1/namespaces/default/deployments/a/scale", scale, true},
		{"GET", "/apis/storage.k8s.io/v1alpha1/volumeattachments", `group="storage.k8s.io",removed_release="1.24",resource="volumeattachments",subresource="",version="v1alpha1"`, true},
		{"GET", "/apis/extensions/v1beta1/ingresses", `group="extensions",removed_release="1.22",resource="ingresses",subresource="",version="v1beta1"`, false}, // switched off
	} {
		apitest.Do(t, client, c.method, s.URL()+c.path, "")
		if counted(c.line) != c.counted {
			t.Errorf("after %s %s: %s: counted is %v", c.method, c.path, c.line, !c.counted)
		}
	}
}

// mastersRequest asks for a certificate with the subject O=system:masters, CN=evil.
const mastersRequest = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIa01JR0tBZ0VBTUNneEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRwdFlYTjBaWEp6TVEwd0N3WURWUVFEREFSbApkbWxzTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFKzVNcmt0cG9zWG0wRkFLVXA5OHNwRCtOCjBoMGpmOExacitPOC9obFVFOUIvSUlqbzMzL0ZTMVZYUU5UK05OZW8vU0V1VVRYRW43QmhyR1FnNlU4MUU2QUEKTUFvR0NDcUdTTTQ5QkFNQ0Ewa0FNRVlDSVFEb3VmNTNGTWo0QjQreDVlWUliTytFbXdVMzZRTTdZLzg0cU1BWgp0aFV2L1FJaEFMQitzVEJYeGdBang5ZkphY2Z2WHJqQVYrS3FyL0J2TjhKUzlmVC9HUFR3Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo="

// TestSignerRules checks that the plugins about certificates are asked, in the order of
// which the tests of package admission know nothing.
func TestSignerRules(t *testing.T) {
	s := start(t, Config{})
	body := `{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1","metadata":{"name":"a"},"spec":{"request":"` +
		mastersRequest + `","usages":["client auth"],"signerName":"kubernetes.io/kube-apiserver-client"}}`
	code, _, answer := apitest.Do(t, apitest.Admin(t, s), "POST", s.URL()+"/apis/certificates.k8s.io/v1/certificatesigningrequests", body)
	if code != 403 || !strings.Contains(answer, "signer with system:masters group is not allowed") {
		t.Errorf("%d %s", code, answer)
	}
}

// TestEventsAndQueuesAreCounted looks for upstream's metrics of watches and of work queues.
func TestEventsAndQueuesAreCounted(t *testing.T) {
	s := start(t, Config{Controllers: []string{"namespace"}})
	client := apitest.Admin(t, s)
	for _, path := range []string{
		"/api/v1/namespaces?watch=1&timeoutSeconds=1",
		"/apis/apps/v1/deployments?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
	} {
		if code, _, body := apitest.Do(t, client, "GET", s.URL()+path, ""); code != 200 {
			t.Fatalf("%s: %d %s", path, code, body)
		}
	}
	text := ""
	apitest.Eventually(t, "the controller has done its work", func() bool {
		_, _, text = apitest.Do(t, client, "GET", s.URL()+"/metrics", "")
		return strings.Contains(text, "\n"+`workqueue_depth{name="namespace"} 0`+"\n")
	})
	for _, line := range []string{
		`apiserver_watch_events_total{group="",resource="namespaces",version="v1"} 4`,
		`apiserver_watch_events_sizes_count{group="",resource="namespaces",version="v1"} 4`,
		`apiserver_watch_events_sizes_bucket{group="",resource="namespaces",version="v1",le="1024"} 4`,
		`apiserver_watch_events_sizes_bucket{group="",resource="namespaces",version="v1",le="131072"} 4`,
		`apiserver_watch_events_total{group="apps",resource="deployments",version="v1"} 1`, // the bookmark
		`workqueue_adds_total{name="namespace"} `,
		`workqueue_queue_duration_seconds_count{name="namespace"} `,
		`workqueue_work_duration_seconds_bucket{name="namespace",le="+Inf"} `,
		`workqueue_retries_total{name="namespace"} `,
		`workqueue_unfinished_work_seconds{name="namespace"} `,
		`workqueue_longest_running_processor_seconds{name="namespace"} `,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}
