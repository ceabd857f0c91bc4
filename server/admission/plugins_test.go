package admission_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

func pluginOptions(t testing.TB) admission.Options {
	t.Helper()
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	return admission.Options{
		WebhookOptions: admission.WebhookOptions{Store: storetest.Open(t, storetest.Memory, sqlstore.Options{}), Client: &clientrest.Config{Host: "127.0.0.1:0"}, Authorizer: signersOf()},
		Kinds:          kind.NewRegistry(builtin.Priorities()),
		Stop:           stop,
	}
}

func TestNew(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration: {apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [{type: Planet, qps: 1, burst: 1}]}
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	quota := filepath.Join(t.TempDir(), "quota.yaml")
	if err := os.WriteFile(quota, []byte(strings.ReplaceAll(text, "EventRateLimit", "ResourceQuota")), 0o600); err != nil {
		t.Fatal(err)
	}
	away := filepath.Join(t.TempDir(), "away.yaml")
	if err := os.WriteFile(away, []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- {name: PodSecurity, path: nowhere.yaml}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		enable, disable []string
		file            string
		want            string // in the error
	}{
		{},
		{enable: []string{"AlwaysPullImages", "LimitRanger"}, disable: []string{"ServiceAccount", "ValidatingAdmissionPolicy", "AlwaysDeny"}},
		{enable: []string{"Nope"}, want: `Config.EnableAdmissionPlugins: plugin "Nope" is unknown; write names out of AlwaysAdmit, `},
		{disable: []string{"limitranger"}, want: `Config.DisableAdmissionPlugins: plugin "limitranger" is unknown`},
		{enable: []string{"Priority"}, disable: []string{"Priority"}, want: `plugin "Priority" is in both Config.EnableAdmissionPlugins and Config.DisableAdmissionPlugins`},
		{enable: []string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"}},
		{enable: []string{"ImagePolicyWebhook"}, want: `couldn't init admission plugin "ImagePolicyWebhook"`},
		{enable: []string{"EventRateLimit"}, want: "EventRateLimit"},
		{enable: []string{"EventRateLimit"}, file: config, want: `Unsupported value: "Planet"`},
		{file: config}, // of a plugin that does not run
		{file: quota, want: "ResourceQuota"},
		{file: away, want: filepath.Join(filepath.Dir(away), "nowhere.yaml") + ": no such file"},
		{file: away, disable: []string{"PodSecurity"}},
	} {
		o := pluginOptions(t)
		o.Enable, o.Disable = c.enable, c.disable
		var err error
		if o.Config, err = admission.ReadConfig(c.file); err != nil {
			t.Fatal(err)
		}
		if _, err := admission.New(o); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("enable %v, disable %v, %s: %v, want %s", c.enable, c.disable, c.file, err, c.want)
		}
	}
	if _, err := admission.ReadConfig(config + "x"); err == nil {
		t.Error("a file that is not there")
	}
}

// signersOf tells what somebody may do to a signer: "jane approve example.com/s".
func signersOf(all ...string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetResource() == "signers" && slices.Contains(all, a.GetUser().GetName()+" "+a.GetVerb()+" "+a.GetName()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

// serveCertificates serves the API to whoever the header User names, with the plugins.
func serveCertificates(t *testing.T, authz authorizer.Authorizer) http.Handler {
	t.Helper()
	o := pluginOptions(t)
	kinds := kind.NewRegistry(builtin.Priorities())
	kinds.Replace(nil, builtin.Kinds(builtin.Options{Registry: kinds}))
	o.Authorizer, o.Kinds = authz, kinds
	plugins, err := admission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	api := rest.New(o.Store, kinds, rest.Options{Admission: plugins})
	paths := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := paths.NewRequestInfo(r)
		if err != nil {
			t.Error(err)
		}
		api.Serve(w, r, info, &user.DefaultInfo{Name: r.Header.Get("User")})
	})
}

func newCSR(t *testing.T, name, signer, organization string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "a", Organization: []string{organization}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{
		"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"signerName": signer, "usages": []string{"client auth"},
			"request": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestCertificates plays one life of requests; each row sees what those before left.
func TestCertificates(t *testing.T) {
	h := serveCertificates(t, signersOf(
		"jane approve example.com/one", "dom approve example.com/*", "sig sign example.com/one", "sig sign other.example.com/*",
	))
	const (
		approved = `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"}]}}`
		failed   = `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"},{"type":"Failed","status":"True","reason":"r","message":"m"}]}}`
		client   = "kubernetes.io/kube-apiserver-client"
	)
	for _, c := range []struct {
		who, method, path, body string
		code                    int
		has                     string
	}{
		{"any", "POST", "", newCSR(t, "one", "example.com/one", "dev"), 201, ""},
		{"any", "POST", "", newCSR(t, "two", "example.com/two", "system:masters"), 201, ""},
		{"any", "POST", "", newCSR(t, "client", client, "dev"), 201, ""},
		{"any", "POST", "", newCSR(t, "master", client, "system:masters"), 403, `certificatesigningrequests.certificates.k8s.io \"master\" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed`},
		{"any", "PATCH", "/one", `{"metadata":{"labels":{"a":"b"}}}`, 200, `"a":"b"`},
		{"any", "PATCH", "/one/approval", approved, 403, `certificatesigningrequests.certificates.k8s.io \"one\" is forbidden: user not permitted to approve requests with signerName \"example.com/one\"`},
		{"sig", "PATCH", "/one/approval", approved, 403, "user not permitted to approve"},
		{"jane", "PATCH", "/two/approval", approved, 403, `signerName \"example.com/two\"`},
		{"jane", "PATCH", "/one/approval?dryRun=All", approved, 200, `"type":"Approved"`},
		{"jane", "PATCH", "/one/approval", approved, 200, `"type":"Approved"`},
		{"dom", "PATCH", "/two/approval", approved, 200, `"type":"Approved"`},
		{"jane", "PATCH", "/one/status", failed, 403, `user not permitted to sign requests with signerName \"example.com/one\"`},
		{"sig", "PATCH", "/two/status", failed, 403, `user not permitted to sign requests with signerName \"example.com/two\"`},
		{"sig", "PATCH", "/one/status", failed, 200, `"type":"Failed"`},
		{"any", "DELETE", "/one", "", 200, ""},
	} {
		r := httptest.NewRequest(c.method, "/apis/certificates.k8s.io/v1/certificatesigningrequests"+c.path, strings.NewReader(c.body))
		r.Header.Set("User", c.who)
		r.Header.Set("Content-Type", "application/json")
		if c.method == "PATCH" {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s by %s: %s %s: %d %s", c.path, c.who, c.method, c.body, w.Code, w.Body)
		}
	}
}

// A pod cannot be resized beyond what its node has, as the node is in the store.
func TestResizeWithinNode(t *testing.T) {
	srv := server.New(server.Config{Controllers: []string{}, DisableAdmissionPlugins: []string{"ServiceAccount"}})
	if err := srv.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	client := apitest.Typed(t, srv)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cpu := func(n string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
	}
	pods := client.CoreV1().Pods("default")
	must(pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{
			Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: cpu("1"), Limits: cpu("9")},
		}}},
	}, metav1.CreateOptions{}))
	resize := func(n string) error {
		pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
		must(pod, err)
		pod.Spec.Containers[0].Resources.Requests = cpu(n)
		_, err = pods.UpdateResize(t.Context(), "p", pod, metav1.UpdateOptions{})
		return err
	}
	if err := resize("2"); !apierrors.IsForbidden(err) {
		t.Errorf("without its node: %v", err)
	}
	node, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	must(node, err)
	node.Status.Allocatable = cpu("3")
	must(client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}))
	if err := resize("4"); !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, "NodeCapacity") {
		t.Errorf("beyond its node: %v", err)
	}
	if err := resize("3"); err != nil {
		t.Errorf("within its node: %v", err)
	}
}
