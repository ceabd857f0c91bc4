package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kms/pkg/service"
)

// services are what a plinth asks: an issuer of tokens, webhooks, and a key service. The
// webhooks answer nonsense, but for the rights of most users.
type services struct {
	*httptest.Server
	dir  string
	grpc *service.GRPCService

	mu   sync.Mutex
	sent map[string]bool // Authorization headers
	keys []string        // that the key service has encrypted
}

func startServices(t *testing.T) *services {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") // t.TempDir is too long for a socket
	must(t, err)
	s := &services{dir: dir, sent: map[string]bool{}}
	s.Server = httptest.NewTLSServer(s)
	s.grpc = service.NewGRPCService(filepath.Join(dir, "s"), 5*time.Second, s)
	ended := make(chan struct{})
	go func() { _ = s.grpc.ListenAndServe(); close(ended) }()
	t.Cleanup(func() {
		s.Close()
		s.grpc.Close()
		<-ended
		os.RemoveAll(dir)
	})
	soon(t, "the key service listens", func() bool {
		c, err := net.Dial("unix", filepath.Join(dir, "s"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return s
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.sent[r.URL.Path+" "+r.Header.Get("Authorization")] = true
	s.mu.Unlock()
	switch {
	case r.URL.Path == "/issuer/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":"%[1]s/issuer","jwks_uri":"%[1]s/issuer/keys"}`, s.URL)
	case r.URL.Path == "/issuer/keys":
		fmt.Fprint(w, `{"keys":[]}`)
	case r.URL.Path == "/rights" && !bytes.Contains(body, []byte("system:bootstrap:")):
		fmt.Fprint(w, `{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview","status":{}}`)
	default:
		fmt.Fprint(w, "<html>{")
	}
}

// wasSent tells whether plinth has asked at a path with these credentials.
func (s *services) wasSent(path, authorization string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[path+" "+authorization]
}

// hook lets plinth ask a webhook about Secrets, whose answer does not count.
func (s *services) hook(t *testing.T, kube kubernetes.Interface) {
	t.Helper()
	at, ignore, none := s.URL+"/admission", admissionv1.Ignore, admissionv1.SideEffectClassNone
	_, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "hook.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &at, CABundle: s.authority()},
			FailurePolicy: &ignore, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.OperationAll},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
			}},
		}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// authority is the certificate of the HTTP services.
func (s *services) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// kubeconfig is for a webhook at a path.
func (s *services) kubeconfig(path, token string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s%s", certificate-authority-data: %s}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, s.URL, path, base64.StdEncoding.EncodeToString(s.authority()), token)
}

// jwt is a token of the issuer that nobody has signed.
func (s *services) jwt() string {
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"iss":"%s/issuer","aud":"plinth","sub":"ann","exp":%d}`, s.URL, time.Now().Add(time.Hour).Unix())
	return part([]byte(`{"alg":"RS256","kid":"x"}`)) + "." + part([]byte(claims)) + "." + part([]byte(secretSignature))
}

// Status, Encrypt and Decrypt are the key service.
func (s *services) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "one"}, nil
}

func (s *services) Encrypt(_ context.Context, _ string, key []byte) (*service.EncryptResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, string(key))
	return &service.EncryptResponse{Ciphertext: masked(key), KeyID: "one"}, nil
}

func (s *services) Decrypt(_ context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	return masked(r.Ciphertext), nil
}

// masked stands for encryption.
func masked(data []byte) []byte {
	out := make([]byte, len(data))
	for i := range data {
		out[i] = data[i] ^ 0x5a
	}
	return out
}
