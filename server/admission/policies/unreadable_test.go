package policies_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/encryption"
)

// TestUnreadable starts a server that lacks the key of a policy, of its binding, or of the
// parameter that may be missing. Nobody knows what they forbid, so all that they may be about
// is refused.
func TestUnreadable(t *testing.T) {
	for _, c := range []struct{ resource, want string }{
		{"validatingadmissionpolicies.admissionregistration.k8s.io", "not yet ready to handle request"},
		{"validatingadmissionpolicybindings.admissionregistration.k8s.io", "not yet ready to handle request"},
		{"secrets", "denied request: failed to configure binding"},
	} {
		dsn := logtest.SQLite(t)
		withKey := func(key string, f func(srv *server.Server)) {
			srv := server.New(server.Config{DSN: dsn, Controllers: []string{}, Encryption: encryption.Options{ConfigFile: encrypted(t, c.resource, key)}})
			if err := srv.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			f(srv)
		}
		withKey("a", func(srv *server.Server) {
			client := apitest.Typed(t, srv)
			if _, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "param"}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			policy, binding := newPolicy("p", "configmaps", "true"), newBinding("p")
			policy.Spec.ParamKind = &v1.ParamKind{APIVersion: "v1", Kind: "Secret"}
			binding.Spec.ParamRef = &v1.ParamRef{Name: "param", ParameterNotFoundAction: ptr.To(v1.AllowAction)}
			putPolicy(t, client, policy, binding)
		})
		withKey("b", func(srv *server.Server) {
			if err := tryCreate(t.Context(), apitest.Typed(t, srv), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s cannot be read: %v", c.resource, err)
			}
		})
		withKey("a", func(srv *server.Server) {
			if err := tryCreate(t.Context(), apitest.Typed(t, srv), nil); err != nil {
				t.Errorf("%s can be read again: %v", c.resource, err)
			}
		})
	}
}

// encrypted returns a file that says to encrypt a resource with a key.
func encrypted(t *testing.T, resource, key string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "encryption.yaml")
	text := fmt.Sprintf(`kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: [%s]
  providers:
  - aesgcm: {keys: [{name: k, secret: %s}]}
`, resource, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(key, 32))))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
