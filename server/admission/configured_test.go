package admission_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/servertest"
)

// manifest puts a file into a directory as a whole.
func manifest(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// refusing is a policy in a file, and its binding, that refuses ConfigMaps by an expression.
func refusing(expression, message string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p.static.k8s.io}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: %q, message: %s}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b.static.k8s.io}
spec: {policyName: p.static.k8s.io, validationActions: [Deny]}
`, expression, message)
}

// create returns the error of a dry run that creates a ConfigMap.
func create(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{DryRun: []string{"All"}})
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestManifestsAreFollowed: policies in files count as soon as the files have changed. While these cannot be used, what was read
// before counts, and /readyz says so.
func TestManifestsAreFollowed(t *testing.T) {
	dir := t.TempDir()
	manifest(t, dir, "p.yaml", refusing("false", "one"))
	srv := servertest.Start(t, servertest.Options{AdmissionConfigFile: configFile(t, map[string]string{"ValidatingAdmissionPolicy": "staticManifestsDir: " + dir})})
	client := kubernetes.NewForConfigOrDie(srv.Config)
	refuses := func(message string) func() bool {
		return func() bool { return strings.HasSuffix(create(t, client), message) }
	}
	usable := func() bool {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz/config-files").Do(t.Context()).Error() == nil
	}
	if !refuses("denied request: one")() || !usable() {
		t.Error(create(t, client))
	}
	manifest(t, dir, "p.yaml", refusing("false", "two"))
	apitest.Eventually(t, "the new policy counts", refuses("denied request: two"))
	for _, bad := range []string{refusing("false +", "three"), ""} {
		manifest(t, dir, "p.yaml", bad)
		apitest.Eventually(t, "the file cannot be used", func() bool { return !usable() })
		if !refuses("denied request: two")() {
			t.Error(create(t, client))
		}
		manifest(t, dir, "p.yaml", refusing("false", "two"))
		apitest.Eventually(t, "the file is good again", usable)
	}
	manifest(t, dir, "p.yaml", refusing("true", "four"))
	apitest.Eventually(t, "nothing is refused", func() bool { return create(t, client) == "" && usable() })
	manifest(t, dir, "q.yaml", strings.ReplaceAll(refusing("false", "five"), "p.static", "q.static"))
	apitest.Eventually(t, "names are unique", func() bool { return !usable() }) // of bindings
	manifest(t, dir, "q.yaml", strings.NewReplacer("p.static", "q.static", "b.static", "c.static").Replace(refusing("false", "five")))
	apitest.Eventually(t, "both files count", refuses("denied request: five"))
	for _, name := range []string{"p.yaml", "q.yaml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	apitest.Eventually(t, "no policy is left", func() bool { return create(t, client) == "" && usable() })
}

// TestWebhooksInFiles: webhooks in files are asked before those that are stored, and about these; the files are followed. A
// kubeConfigFile says who asks.
func TestWebhooksInFiles(t *testing.T) {
	var asked atomic.Pointer[http.Header]
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(&r.Header)
		review := &admissionv1.AdmissionReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		deny(`{"message":"by `+strings.TrimPrefix(r.URL.Path, "/")+`"}`)(w, r, review)
	}))
	defer server.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	hooks := func(kind, path string) string {
		return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: h.static.k8s.io}
webhooks:
- name: h.example.com
  clientConfig: {url: "%s/%s", caBundle: %s}
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: ["", admissionregistration.k8s.io], apiVersions: ["*"], operations: [CREATE], resources: [configmaps, mutatingwebhookconfigurations]}]
`, kind, server.URL, path, ca)
	}
	as := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, users: [{name: "*", user: {token: secret}}]}`
	if err := os.WriteFile(as, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for plugin, kind := range map[string]string{
		"MutatingAdmissionWebhook": "MutatingWebhookConfiguration", "ValidatingAdmissionWebhook": "ValidatingWebhookConfiguration",
	} {
		t.Run(plugin, func(t *testing.T) {
			dir := t.TempDir()
			manifest(t, dir, "h.yaml", hooks(kind, "one"))
			file := configFile(t, map[string]string{plugin: "kubeConfigFile: " + as + ", staticManifestsDir: " + dir})
			srv := servertest.Start(t, servertest.Options{AdmissionConfigFile: file})
			client := kubernetes.NewForConfigOrDie(srv.Config)
			if got := create(t, client); !strings.HasSuffix(got, "denied the request: by one") || asked.Load().Get("Authorization") != "Bearer secret" {
				t.Errorf("%s, asked with %v", got, asked.Load())
			}
			code, _, body := apitest.Do(t, clientOf(t, srv), "POST", srv.URL()+"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
				`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"stored"},"webhooks":[]}`)
			if code != 400 || !strings.Contains(body, "by one") {
				t.Errorf("a configuration of webhooks: %d %s", code, body)
			}
			manifest(t, dir, "h.yaml", hooks(kind, "two"))
			apitest.Eventually(t, "the new webhook is asked", func() bool { return strings.HasSuffix(create(t, client), "by two") })
			manifest(t, dir, "h.yaml", hooks("Webhook", "three"))
			apitest.Eventually(t, "the file cannot be used", func() bool {
				return client.Discovery().RESTClient().Get().AbsPath("/readyz/config-files").Do(t.Context()).Error() != nil
			})
			if got := create(t, client); !strings.HasSuffix(got, "by two") {
				t.Error(got)
			}
			if err := os.Remove(filepath.Join(dir, "h.yaml")); err != nil {
				t.Fatal(err)
			}
			apitest.Eventually(t, "nobody is asked", func() bool { return create(t, client) == "" })
		})
	}
}

func clientOf(t *testing.T, srv *servertest.Server) *http.Client {
	t.Helper()
	client, err := clientrest.HTTPClientFor(srv.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestManifestsAtTheStart: what is wrong with the files ends the start, with upstream's words.
func TestManifestsAtTheStart(t *testing.T) {
	dir := t.TempDir()
	manifest(t, dir, "p.yaml", strings.ReplaceAll(refusing("true", "m"), "p.static.k8s.io", "p"))
	for plugin := range configured {
		for _, row := range []struct{ fields, want string }{
			{"staticManifestsDir: " + t.TempDir(), ""},
			{`staticManifestsDir: ""`, ""},
			{"staticManifestsDir: manifests", `staticManifestsDir: Invalid value: "manifests": must be an absolute file path`},
			{"staticManifestsDir: /nowhere", `staticManifestsDir: Invalid value: "/nowhere": unable to read: stat /nowhere: no such file or directory`},
			{"staticManifests: x", `strict decoding error: unknown field "staticManifests"`},
			{"staticManifestsDir: " + dir, dir + "/p.yaml"},
		} {
			o := pluginOptions(t)
			var err error
			if o.Config, err = admission.ReadConfig(configFile(t, map[string]string{plugin: row.fields})); err != nil {
				t.Fatal(err)
			}
			if _, err = admission.New(o); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), "admission plugin "+plugin+": ") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s, %s: %v", plugin, row.fields, err)
			}
		}
	}
}
