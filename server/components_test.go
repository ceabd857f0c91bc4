package server

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

// TestComponentStatuses asks only about the database: what listens at the ports of the
// others depends on the machine.
func TestComponentStatuses(t *testing.T) {
	s := start(t, Config{})
	client := admin(t, s)
	const path = "/api/v1/componentstatuses"
	healthy := `{"metadata":{"name":"database","creationTimestamp":null},"conditions":[{"type":"Healthy","status":"True","message":"ok"}]}`
	for _, c := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", path + "/database", 200, `{"kind":"ComponentStatus","apiVersion":"v1",` + healthy[1:]},
		{"GET", path + "?fieldSelector=metadata.name%3Ddatabase", 200, `{"kind":"ComponentStatusList","apiVersion":"v1","metadata":{},"items":[` + healthy + `]}`},
		{"GET", path + "?fieldSelector=metadata.name%3Dnobody", 200, `{"kind":"ComponentStatusList","apiVersion":"v1","metadata":{},"items":[]}`},
		{"GET", path + "?labelSelector=a%3Db", 200, `{"kind":"ComponentStatusList","apiVersion":"v1","metadata":{},"items":[]}`},
		{"GET", path + "?fieldSelector=spec.x%3Da", 400, `"message":"\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""`},
		{"GET", path + "/nobody", 404, `"message":"componentstatus \"nobody\" not found"`},
		{"GET", path + "?watch=1", 405, `"message":"watch is not supported on resources of kind \"componentstatuses\""`},
		{"GET", "/api/v1/watch/componentstatuses", 404, `"message":"the server could not find the requested resource"`},
		{"GET", "/api/v1/namespaces/default/componentstatuses", 404, `"message":"the server could not find the requested resource"`},
		{"POST", path, 405, `"message":"the server does not allow this method on the requested resource"`},
		{"DELETE", path + "/database", 405, `"message":"the server does not allow this method on the requested resource"`},
	} {
		code, header, body := do(t, client, c.method, s.URL()+c.path, "")
		if code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, code, body, c.code, c.body)
		}
		_, warned := header["Warning"]
		if routed := code != 404 && code != 405 || strings.Contains(body, "watch is not") || strings.Contains(body, "nobody"); warned != routed {
			t.Errorf("%s %s: %d with the warning %q", c.method, c.path, code, header["Warning"])
		}
	}
}

func TestComponentStatusesInProtobuf(t *testing.T) {
	s := start(t, Config{})
	config := clientrest.CopyConfig(s.RESTConfig())
	config.ContentType, config.WarningHandler = "application/vnd.kubernetes.protobuf", clientrest.NoWarnings{}
	statuses := kubernetes.NewForConfigOrDie(config).CoreV1().ComponentStatuses()
	list, err := statuses.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	if got := strings.Join(names, " "); got != "controller-manager database scheduler" || list.ResourceVersion != "" {
		t.Errorf("%s at %q", got, list.ResourceVersion)
	}
	one, err := statuses.Get(t.Context(), "database", metav1.GetOptions{})
	if err != nil || len(one.Conditions) != 1 || one.Conditions[0].Message != "ok" {
		t.Errorf("%v %v", one, err)
	}
}

func TestDeprecatedRequestsAreCounted(t *testing.T) {
	s := start(t, Config{
		ServeRemovedAPIs: []string{"batch/v1beta1", "extensions/v1beta1", "storage.k8s.io/v1alpha1"},
		RuntimeConfig:    map[string]string{"extensions/v1beta1/ingresses": "false"},
	})
	client := admin(t, s)
	counted := func(line string) bool {
		_, _, body := do(t, client, "GET", s.URL()+"/metrics", "")
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
		do(t, client, c.method, s.URL()+c.path, "")
		if counted(c.line) != c.counted {
			t.Errorf("after %s %s: %s: counted is %v", c.method, c.path, c.line, !c.counted)
		}
	}
}

// mastersRequest asks for a certificate with the subject O=system:masters, CN=evil.
const mastersRequest = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIa01JR0tBZ0VBTUNneEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRwdFlYTjBaWEp6TVEwd0N3WURWUVFEREFSbApkbWxzTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFKzVNcmt0cG9zWG0wRkFLVXA5OHNwRCtOCjBoMGpmOExacitPOC9obFVFOUIvSUlqbzMzL0ZTMVZYUU5UK05OZW8vU0V1VVRYRW43QmhyR1FnNlU4MUU2QUEKTUFvR0NDcUdTTTQ5QkFNQ0Ewa0FNRVlDSVFEb3VmNTNGTWo0QjQreDVlWUliTytFbXdVMzZRTTdZLzg0cU1BWgp0aFV2L1FJaEFMQitzVEJYeGdBang5ZkphY2Z2WHJqQVYrS3FyL0J2TjhKUzlmVC9HUFR3Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo="

// TestSignerRules checks that the plugins about certificates are asked, in the order of
// which the tests of admit know nothing.
func TestSignerRules(t *testing.T) {
	s := start(t, Config{})
	body := `{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1","metadata":{"name":"a"},"spec":{"request":"` +
		mastersRequest + `","usages":["client auth"],"signerName":"kubernetes.io/kube-apiserver-client"}}`
	code, _, answer := do(t, admin(t, s), "POST", s.URL()+"/apis/certificates.k8s.io/v1/certificatesigningrequests", body)
	if code != 403 || !strings.Contains(answer, "signer with system:masters group is not allowed") {
		t.Errorf("%d %s", code, answer)
	}
}
