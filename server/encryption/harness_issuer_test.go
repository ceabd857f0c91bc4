package encryption_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

// issuer is an OpenID Connect issuer with one key. Its users are called URL#SUBJECT.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	i := &issuer{httptest.NewTLSServer(mux), key}
	t.Cleanup(i.Close)
	answer := func(path string, body any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(body) })
	}
	answer("/.well-known/openid-configuration", map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	answer("/keys", jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
	return i
}

func (i *issuer) token(t testing.TB, subject string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": i.URL, "aud": "plinth", "sub": subject, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}).CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// believe is an AuthenticationConfiguration with these issuers.
func believe(all ...*issuer) string {
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\njwt:\n")
	for _, i := range all {
		ca, _ := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))) // of a string
		fmt.Fprintf(&b, `- {issuer: {url: %q, audiences: [plinth], certificateAuthority: %s}, claimMappings: {username: {claim: sub, prefix: %q}}}`+"\n", i.URL, ca, i.URL+"#")
	}
	return b.String()
}

// bearing returns a client who has nothing but a token.
func (i *instance) bearing(token string) *kubernetes.Clientset {
	config := clientrest.AnonymousClientConfig(i.config)
	config.BearerToken, config.QPS = token, -1
	return kubernetes.NewForConfigOrDie(config)
}
