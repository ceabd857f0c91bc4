package admit_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/server/servertest"
)

// Warnings of webhooks are the client's.
func TestWebhookWarnings(t *testing.T) {
	w := newWebhooks(t, "")
	warn := func(texts ...string) answer {
		return respond(func(r *admissionv1.AdmissionResponse) { r.Warnings = texts })
	}
	w.configure([]hook{{mutating: true, answer: warn("one")}, {answer: warn("two", "one")}})
	for range 3 {
		_, body, head := w.send("APPLY", maps+"/w?fieldManager=m", cm("w", `,"data":{"a":"b"}`))
		if got := strings.Join(head["Warning"], "; "); got != `299 - "one"; 299 - "two"` {
			t.Errorf("got warnings %s with %s", got, body)
		}
	}
}

// A webhook that is named by its Service is called where the Service leads, and has to have
// a certificate for the name that the Service has in a cluster.
func TestWebhookOfService(t *testing.T) {
	w := newWebhooks(t, "")
	authority, key, err := cert.GenerateSelfSignedCertKey("hook.default.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(authority, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(w)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	client := fmt.Sprintf(`{"service":{"namespace":"default","name":"hook","port":%d,"path":"/0"},"caBundle":"`, port)
	trusted := client + base64.StdEncoding.EncodeToString(authority) + `"}`
	w.play([]step{
		{nil, "POST /api/v1/namespaces/default/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"hook"},"spec":{"type":"ExternalName","externalName":"127.0.0.1"}}`, "201", ""},
		{[]hook{{client: trusted, answer: allow}}, "POST " + maps + "?dryRun=All", cm("a", ""), "201", "a CREATE v1/configmaps a new=v1/ConfigMap dry"},
		{[]hook{{client: client + `CA"}`, more: `,"failurePolicy":"Ignore"`, answer: deny("")}}, "POST " + maps + "?dryRun=All", cm("a", ""), "201", ""},
	})
}

// A server starts although a webhook that has a say in everything is away, and makes what
// every cluster has.
func TestStartWithoutWebhook(t *testing.T) {
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "plinth.db")
	run := func() (*servertest.Server, kubernetes.Interface) {
		srv, err := servertest.Run(t.Context(), servertest.Options{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		return srv, kubernetes.NewForConfigOrDie(srv.Config)
	}
	srv, client := run()
	if err := client.CoreV1().Services("default").Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	url, none := "https://127.0.0.1:1/", v1.SideEffectClassNone
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &v1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "away"},
		Webhooks: []v1.ValidatingWebhook{{
			Name: "away.example.com", ClientConfig: v1.WebhookClientConfig{URL: &url}, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			Rules: []v1.RuleWithOperations{{Operations: []v1.OperationType{"*"}, Rule: v1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	srv, client = run()
	defer srv.Close()
	if _, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `failed calling webhook "away.example.com"`) {
		t.Errorf("got %v", err)
	}
}
