package authn_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/yaml"
)

// mood is how a remote server of the tests answers.
type mood int32

const (
	well    mood = iota
	failing      // 500
	garbage      // what is not JSON
	gone         // the connection breaks
)

// remote is a server of the tests' own whose mood changes.
type remote struct {
	*httptest.Server
	mood  atomic.Int32
	delay atomic.Int64
	calls atomic.Int64
}

func newRemote(t testing.TB, handler http.Handler) *remote {
	r := &remote{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.calls.Add(1)
		body, _ := io.ReadAll(q.Body) // only then does the end of the client end the context
		q.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-time.After(time.Duration(r.delay.Load())):
		case <-q.Context().Done():
			return
		}
		switch mood(r.mood.Load()) {
		case failing:
			http.Error(w, "not now", http.StatusInternalServerError)
		case garbage:
			_, _ = w.Write([]byte("<html>{"))
		case gone:
			panic(http.ErrAbortHandler)
		default:
			handler.ServeHTTP(w, q)
		}
	}))
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *remote) feels(m mood) { r.mood.Store(int32(m)) }

// issuer is an OpenID Connect issuer.
type issuer struct {
	*remote
	mu      sync.Mutex
	keys    map[string]*ecdsa.PrivateKey // by id; those that are published
	signing string
}

func newIssuer(t testing.TB) *issuer {
	i := &issuer{keys: map[string]*ecdsa.PrivateKey{}}
	i.rotate(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(i.published()) })
	i.remote = newRemote(t, mux)
	return i
}

func (i *issuer) published() (set jose.JSONWebKeySet) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, key := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"})
	}
	return set
}

// rotate begins to sign with a new key. The old ones are still published.
func (i *issuer) rotate(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.signing = "key-" + strconv.Itoa(len(i.keys))
	i.keys[i.signing] = key
}

type claims map[string]any

// token signs a token for the audience plinth, with claims besides or instead of the usual ones.
func (i *issuer) token(t testing.TB, subject string, more claims) string {
	t.Helper()
	i.mu.Lock()
	id, key := i.signing, i.keys[i.signing]
	i.mu.Unlock()
	return i.sign(t, id, key, subject, more)
}

func (i *issuer) sign(t testing.TB, id string, key *ecdsa.PrivateKey, subject string, more claims) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := claims{"iss": i.URL, "aud": "plinth", "sub": subject, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for name, value := range more {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	text, err := jwt.Signed(signer).Claims(map[string]any(all)).CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ca is what a client needs to know to trust the issuer, in PEM.
func (r *remote) ca() string { return inPEM(r.Certificate()) }

// configuration is a file for --authentication-config in YAML.
func configuration(t testing.TB, version string, jwt []map[string]any, anonymous map[string]any) string {
	t.Helper()
	c := map[string]any{"apiVersion": "apiserver.config.k8s.io/" + version, "kind": "AuthenticationConfiguration", "jwt": jwt}
	if anonymous != nil {
		c["anonymous"] = anonymous
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// jwt is the part of a configuration about i. Users are called PREFIX:SUBJECT.
func (i *issuer) jwt(prefix string) map[string]any {
	return map[string]any{
		"issuer": map[string]any{"url": i.URL, "audiences": []string{"plinth"}, "certificateAuthority": i.ca()},
		"claimMappings": map[string]any{
			"username": map[string]any{"claim": "sub", "prefix": prefix + ":"},
			"groups":   map[string]any{"claim": "groups", "prefix": prefix + ":"},
		},
	}
}

// reviewer is a webhook that knows some tokens.
type reviewer struct {
	*remote
	mu    sync.Mutex
	users map[string]authenticationv1.UserInfo
	last  authenticationv1.TokenReview
}

func newReviewer(t testing.TB) *reviewer {
	w := &reviewer{users: map[string]authenticationv1.UserInfo{}}
	w.remote = newRemote(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.last = authenticationv1.TokenReview{}
		if err := json.NewDecoder(r.Body).Decode(&w.last); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		answer := authenticationv1.TokenReview{TypeMeta: w.last.TypeMeta}
		answer.Status.User, answer.Status.Authenticated = w.users[w.last.Spec.Token], w.users[w.last.Spec.Token].Username != ""
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(answer)
	}))
	return w
}

func (w *reviewer) knows(token string, who authenticationv1.UserInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users[token] = who
}

func (w *reviewer) forgets(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.users, token)
}

// kubeconfig points at the webhook.
func (w *reviewer) kubeconfig(t testing.TB) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": w.URL + "/review", "certificate-authority-data": []byte(w.ca())}}},
		"users":    []any{map[string]any{"name": "c", "user": map[string]any{"token": "of-the-webhook"}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "c"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return file(t, string(text))
}
