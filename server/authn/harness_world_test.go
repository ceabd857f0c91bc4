package authn_test

import (
	"encoding/base64"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/pki"
)

// world is a server that believes everybody there is, as far as they deserve it.
type world struct {
	*server.Server
	people, proxies *pki.PKI
	issuer          *issuer
	reviewer        *reviewer
	log             *apitest.Lines
	secrets         []string // must not be in the log
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{people: authority(t), proxies: authority(t), issuer: newIssuer(t), reviewer: newReviewer(t), log: &apitest.Lines{}}
	w.secrets = []string{"static-token", "of-wanda", "of-the-webhook", "0123456789abcdef"}
	w.reviewer.knows("of-wanda", authenticationv1.UserInfo{
		Username: "wanda", UID: "w7", Groups: []string{"web"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
	})
	c := with(func(o *authn.Options) {
		o.ClientCert.ClientCA = file(t, string(w.people.CA()))
		o.BootstrapToken.Enable = true
		o.OIDC.IssuerURL, o.OIDC.ClientID, o.OIDC.CAFile = w.issuer.URL, "plinth", file(t, w.issuer.ca())
		o.OIDC.UsernamePrefix, o.OIDC.GroupsClaim, o.OIDC.GroupsPrefix, o.OIDC.SigningAlgs = "oidc:", "groups", "oidc:", []string{"ES256"}
		o.WebHook.ConfigFile, o.WebHook.Version, o.WebHook.RetryBackoff.Steps = w.reviewer.kubeconfig(t), "v1", 1
		r := o.RequestHeader
		r.ClientCAFile, r.AllowedNames = file(t, string(w.proxies.CA())), []string{"gate"}
		r.UsernameHeaders, r.UIDHeaders, r.GroupHeaders, r.ExtraHeaderPrefixes = []string{"X-Remote-User"}, []string{"X-Remote-Uid"}, []string{"X-Remote-Group"}, []string{"X-Remote-Extra-"}
	})
	c.Tokens.TokenFile = file(t, `static-token,steve,uid-7,"dev,ops"`+"\n")
	c.Log = w.log.Log()
	w.Server = start(t, c)
	apitest.Eventually(t, "the keys of the issuer are known", func() bool {
		return credentials{token: w.issuer.token(t, "olga", nil)}.who(t, w.Server) != unauthorized
	})
	return w
}

// checkLog looks for secrets in the log.
func (w *world) checkLog(t *testing.T) {
	t.Helper()
	text := w.log.All()
	if !strings.Contains(text, "not authenticated") {
		t.Error("the log does not say who was refused")
	}
	for _, secret := range w.secrets {
		if strings.Contains(text, secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secret))) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// account returns a token of a service account, which is made if it is not there.
func (w *world) account(t *testing.T, name string, audiences ...string) string {
	t.Helper()
	if _, err := apitest.Typed(t, w.Server).CoreV1().ServiceAccounts("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		apitest.AddAccount(t, w.Server, name)
	}
	token := apitest.RequestToken(t, w.Server, name, authenticationv1.TokenRequestSpec{Audiences: audiences})
	w.secrets = append(w.secrets, token)
	return token
}

func (w *world) deletedAccount(t *testing.T) string {
	t.Helper()
	token := w.account(t, "del")
	if err := apitest.Typed(t, w.Server).CoreV1().ServiceAccounts("default").Delete(t.Context(), "del", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return token
}

// recreatedAccount returns a token of an account whose name another account has now.
func (w *world) recreatedAccount(t *testing.T) string {
	t.Helper()
	token := w.deletedAccount(t)
	w.account(t, "del")
	return token
}

func (w *world) bootstrap(t *testing.T, id string, more map[string]string) string {
	t.Helper()
	return bootstrapToken(t, w.Server, id, more)
}

// endingBootstrap returns a token whose Secret waits for its finalizer.
func (w *world) endingBootstrap(t *testing.T, id string) string {
	t.Helper()
	token := w.bootstrap(t, id, nil)
	secrets := apitest.Typed(t, w.Server).CoreV1().Secrets("kube-system")
	secret, err := secrets.Get(t.Context(), "bootstrap-token-"+id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Finalizers = []string{"example.com/wait"}
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := secrets.Delete(t.Context(), secret.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return token
}

// spoil changes the signature of a token.
func spoil(token string) string {
	last := strings.LastIndex(token, ".") + 1
	signature, _ := base64.RawURLEncoding.DecodeString(token[last:])
	signature[3] ^= 1
	return token[:last] + base64.RawURLEncoding.EncodeToString(signature)
}

// unsigned turns a token into one that says of itself that it needs no signature.
func unsigned(token string) string {
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	return header + token[strings.Index(token, "."):strings.LastIndex(token, ".")+1]
}
