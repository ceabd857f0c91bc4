package ui

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/authn"
)

// provider is an OpenID provider with one user, who agrees to everything.
type provider struct {
	*httptest.Server
	key       *ecdsa.PrivateKey
	challenge string // of the code that it has given out
	nonce     string // of the token that it makes
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/authorize",
			"token_endpoint": p.URL + "/token", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "a", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", p.token)
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

// token takes the code of the challenge (RFC 7636).
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if base64.RawURLEncoding.EncodeToString(sum[:]) != p.challenge || r.PostFormValue("code") != "the-code" {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	signer, _ := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "a"}}, nil)
	text, _ := jwt.Signed(signer).Claims(map[string]any{"iss": p.URL, "aud": "plinth", "sub": "ann", "nonce": p.nonce,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}).CompactSerialize()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": text})
}

// caFile has the provider's authority.
func (p *provider) caFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSignInOIDC: the code flow with PKCE signs a user in, and no answer that the browser has not asked for.
func TestSignInOIDC(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ca := p.caFile(t)
	s := startSignIn(t, &OIDC{Issuer: p.URL, ClientID: "plinth", CAFile: ca}, func(c *server.Config) {
		c.Authentication = authn.NewOptions()
		c.Authentication.OIDC = &kubeoptions.OIDCAuthenticationOptions{
			IssuerURL: p.URL, ClientID: "plinth", CAFile: ca, UsernameClaim: "sub", UsernamePrefix: "oidc:", SigningAlgs: []string{"ES256"},
		}
	})
	v := s.visitor(false)
	v.expect(http.StatusUnauthorized, "/ui/", nil, "Sign in with your provider")
	start := func() url.Values {
		t.Helper()
		code, text, h := v.page("/ui/oidc/start", nil)
		at, err := url.Parse(h.Get("Location"))
		if code != http.StatusFound || err != nil || !strings.HasPrefix(at.String(), p.URL+"/authorize?") {
			t.Fatalf("the start answers %d to %q: %s", code, h.Get("Location"), text)
		}
		q := at.Query()
		if q.Get("code_challenge_method") != "S256" || q.Get("client_id") != "plinth" || q.Get("response_type") != "code" || q.Get("redirect_uri") != s.URL()+"/ui/oidc/callback" {
			t.Fatalf("the provider is asked for %v", q)
		}
		p.challenge, p.nonce = q.Get("code_challenge"), q.Get("nonce")
		return q
	}
	start()
	v.expect(http.StatusBadRequest, "/ui/oidc/callback?code=the-code&state=another", nil, "has not asked to sign in")
	q := start()
	v.expect(http.StatusUnauthorized, "/ui/oidc/callback?error=access_denied&error_description=no&state="+q.Get("state"), nil, "access_denied no")
	q = start()
	v.expect(http.StatusBadGateway, "/ui/oidc/callback?code=stolen&state="+q.Get("state"), nil, "does not take the code")
	q = start()
	p.nonce = "of another sign-in"
	v.expect(http.StatusBadGateway, "/ui/oidc/callback?code=the-code&state="+q.Get("state"), nil, "another sign-in")
	v.expect(http.StatusUnauthorized, "/ui/", nil, "Bearer token")
	q = start()
	deadline := time.Now().Add(30 * time.Second) // the server asks the provider for its keys when it starts
	for {
		code, text, _ := v.page("/ui/oidc/callback?code=the-code&state="+q.Get("state"), nil)
		if code == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the callback answers %d %s", code, text)
		}
		q = start()
	}
	v.expect(http.StatusOK, "/ui/", nil, "oidc:ann")
	v.expect(http.StatusBadRequest, "/ui/oidc/callback?code=the-code&state="+q.Get("state"), nil, "has not asked to sign in") // a second time
}
