package tokens_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/tokens"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

func writeKey(t *testing.T, key any) string {
	t.Helper()
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKeyReplaced has a server sign with one key after the other, as an operator does it.
func TestKeyReplaced(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	first, second := writeKey(t, rsaKey), writeKey(t, ecKey)
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "plinth.db")
	made := map[string]string{}
	for i, step := range []struct {
		o    tokens.Options
		adds string
		good []string
	}{
		{tokens.Options{SigningKeyFile: first}, "first", []string{"first"}},
		{tokens.Options{SigningKeyFile: second, KeyFiles: []string{first, second}}, "second", []string{"first", "second"}},
		{tokens.Options{SigningKeyFile: second, KeyFiles: []string{second}, Issuers: []string{issuerA, tokens.DefaultIssuer}}, "issuer", []string{"second", "issuer"}},
		{tokens.Options{SigningKeyFile: second, Issuers: []string{issuerA}}, "", []string{"issuer"}},
	} {
		s := openOn(t, server.Config{DSN: dsn, Tokens: step.o})
		if i == 0 {
			apitest.AddAccount(t, s, "ann")
		}
		if step.adds != "" {
			made[step.adds] = apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{})
		}
		for name, token := range made {
			if who := apitest.WhoAmI(t, s, token); (who != nil) != slices.Contains(step.good, name) {
				t.Errorf("step %d: the token %s: %v", i, name, who)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The key that a server makes is a file of the data directory, made once and nobody else's.
func TestKeyKept(t *testing.T) {
	c := server.Config{DataDir: t.TempDir()}
	s := openOn(t, c)
	apitest.AddAccount(t, s, "ann")
	token := apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.DataDir, "pki", "sa.key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	again := openOn(t, c)
	if apitest.WhoAmI(t, again, token) == nil {
		t.Error("refused after a restart")
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.New(c).Open(t.Context()); err == nil || !strings.Contains(err.Error(), "put the file back") {
		t.Errorf("a key that cannot be read: %v", err)
	}
}

// TestReplicasBelieveEachOther is about servers of one database, each with a key of its own.
func TestReplicasBelieveEachOther(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		c := uncached
		c.DSN = d.Fresh(t)
		one, other := openOn(t, c), openOn(t, c)
		apitest.AddAccount(t, one, "ann")
		token := apitest.RequestToken(t, one, "ann", authenticationv1.TokenRequestSpec{})
		if apitest.WhoAmI(t, other, token) == nil {
			t.Error("what one server signed the other refuses")
		}
		for _, s := range []*server.Server{one, other} {
			// A server hears of another's key soon, not at once.
			apitest.Eventually(t, "both keys are told of", func() bool { return len(readKeys(t, s, token).Keys) == 2 })
		}
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		late := openOn(t, c)
		if apitest.WhoAmI(t, other, token) == nil || apitest.WhoAmI(t, late, token) == nil {
			t.Error("a token is refused whose server is gone")
		}
		if newest := apitest.RequestToken(t, late, "ann", authenticationv1.TokenRequestSpec{}); apitest.WhoAmI(t, other, newest) == nil {
			t.Error("a token is refused whose server came late")
		}
		c.Tokens.KeyFiles = []string{writeKey(t, mustECKey(t))}
		alone := openOn(t, c)
		own := apitest.RequestToken(t, alone, "ann", authenticationv1.TokenRequestSpec{})
		if apitest.WhoAmI(t, alone, token) != nil || apitest.WhoAmI(t, alone, own) == nil {
			t.Error("a server that was told whom to believe believes others")
		}
		if apitest.WhoAmI(t, other, own) == nil {
			t.Error("the key of a server that was told whom to believe is not told of")
		}
	})
}

func mustECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// No request reaches what servers tell each other, not even an admin's with a definition
// of the same name.
func TestPublishedKeysHidden(t *testing.T) {
	c := server.Config{DSN: logtest.Postgres(t)}
	s := openOn(t, c)
	if ids := publishedKeys(t, storetest.Open(t, c.DSN, sqlstore.Options{})); len(ids) != 1 {
		t.Fatalf("%d keys are published", len(ids))
	}
	code, _, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/apis/_plinth/v1/serviceaccountkeys", "")
	if code != http.StatusNotFound {
		t.Errorf("%d %s", code, body)
	}
	code, _, body = apitest.Do(t, apitest.Admin(t, s), "POST", s.URL()+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		`{"metadata":{"name":"serviceaccountkeys._plinth"},"spec":{"group":"_plinth","scope":"Cluster",
		"names":{"plural":"serviceaccountkeys","kind":"ServiceAccountKey"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	if code != http.StatusUnprocessableEntity || !strings.Contains(body, "spec.group") {
		t.Errorf("%d %s", code, body)
	}
}

func readKeys(t *testing.T, s *server.Server, token string) (keys jose.JSONWebKeySet) {
	t.Helper()
	if err := json.Unmarshal(readDocument(t, s, token, "/openid/v1/jwks", "application/jwk-set+json"), &keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

func readDocument(t *testing.T, s *server.Server, token, path, mediaType string) []byte {
	t.Helper()
	config := clientrest.AnonymousClientConfig(s.RESTConfig())
	config.BearerToken = token
	client, err := clientrest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(s.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != mediaType ||
		!strings.HasPrefix(resp.Header.Get("Cache-Control"), "public, max-age=") {
		t.Fatalf("%s: %d %v %s, %v", path, resp.StatusCode, resp.Header, body, err)
	}
	return body
}

// Somebody who knows nothing but the issuer verifies a token, with another library's code
// than the server's own.
func TestIssuerDocuments(t *testing.T) {
	s := start(t, server.Config{Tokens: tokens.Options{Issuers: []string{issuerA, issuerB}}})
	apitest.AddAccount(t, s, "ann")
	token := apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{Audiences: []string{"vault", issuerA}})
	var config struct {
		Issuer  string   `json:"issuer"`
		JWKSURI string   `json:"jwks_uri"`
		Algs    []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := json.Unmarshal(readDocument(t, s, token, "/.well-known/openid-configuration", "application/json"), &config); err != nil {
		t.Fatal(err)
	}
	if config.Issuer != issuerA || config.JWKSURI != s.URL()+"/openid/v1/jwks" || !slices.Equal(config.Algs, []string{"ES256"}) {
		t.Errorf("%+v", config)
	}
	keys := readKeys(t, s, token)
	parsed, err := jwt.ParseSigned(token)
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.Claims
	if err := parsed.Claims(keys.Key(parsed.Headers[0].KeyID)[0].Key, &claims); err != nil {
		t.Fatal(err)
	}
	err = claims.Validate(jwt.Expected{Issuer: issuerA, Subject: "system:serviceaccount:default:ann", Audience: jwt.Audience{"vault"}, Time: time.Now()})
	if err != nil {
		t.Error(err)
	}
	code, _, body := apitest.Do(t, apitest.Anonymous(t, s), "GET", s.URL()+"/openid/v1/jwks", "")
	if code != http.StatusForbidden {
		t.Errorf("without a token: %d %s", code, body)
	}
	// An issuer that is no URL cannot be asked.
	plain := start(t, server.Config{Tokens: tokens.Options{Issuers: []string{"us"}}})
	if code, _, body := apitest.Do(t, apitest.Admin(t, plain), "GET", plain.URL()+"/openid/v1/jwks", ""); code != http.StatusNotFound {
		t.Errorf("of an issuer without a URL: %d %s", code, body)
	}
}

// What is served about tokens is described, by upstream's names of the operations.
func TestTokensDescribed(t *testing.T) {
	s := start(t, server.Config{})
	for path, id := range map[string]string{
		"/openapi/v3/.well-known/openid-configuration": `"getServiceAccountIssuerOpenIDConfiguration"`,
		"/openapi/v3/openid/v1/jwks":                   `"getServiceAccountIssuerOpenIDKeyset"`,
		"/openapi/v3/api/v1":                           `"createCoreV1NamespacedServiceAccountToken"`,
		"/openapi/v3":                                  `"openid/v1/jwks"`,
		"/":                                            `"/.well-known/openid-configuration"`,
	} {
		if code, _, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+path, ""); code != http.StatusOK || !strings.Contains(body, id) {
			t.Errorf("%s: %d, without %s", path, code, id)
		}
	}
	plain := start(t, server.Config{Tokens: tokens.Options{Issuers: []string{"us"}}})
	if _, _, body := apitest.Do(t, apitest.Admin(t, plain), "GET", plain.URL()+"/openapi/v3", ""); strings.Contains(body, "openid") {
		t.Errorf("what is not served is described: %s", body)
	}
}

// A file that cannot be read stops the start, with its name.
func TestKeyFilesBad(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]tokens.Options{
		"no key that signs":   {SigningKeyFile: "nowhere.pem"},
		"nothing that signs":  {SigningKeyFile: empty},
		"no keys":             {KeyFiles: []string{"nowhere.pem"}},
		"nothing that checks": {KeyFiles: []string{empty}},
		"no static tokens":    {TokenFile: "nowhere.csv"},
	} {
		err := server.New(server.Config{Tokens: o}).Open(t.Context())
		if err == nil || !strings.Contains(err.Error(), "open tokens: read") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Servers that come and go with a new key each time do not fill the list of keys.
func TestPublishedKeysBounded(t *testing.T) {
	store := storetest.Open(t, logtest.SQLite(t), sqlstore.Options{})
	own := mustECKey(t)
	signer, err := tokens.Open(t.Context(), tokens.Options{}, func() (any, error) { return own, nil }, store, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish := func(name, inUse string) {
		t.Helper()
		value := `{"kind":"ServiceAccountKey","apiVersion":"plinth.io/v1","metadata":{"name":"` + name + `"},"publicKey":"","inUse":"` + inUse + `"}`
		if _, err := store.Commit(t.Context(), sqlstore.Change{Key: publishedAt + name, Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	before := publishedKeys(t, store)
	publish("spoiled", "once upon a time")
	for i := range 110 {
		publish(fmt.Sprintf("key-%03d", i), time.Now().Add(-time.Duration(500-i)*24*time.Hour).UTC().Format(time.RFC3339))
	}
	if err := signer.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := publishedKeys(t, store)
	if len(before) != 1 || len(left) != 100 {
		t.Fatalf("%d keys are left of %d", len(left), len(before)+111)
	}
	for name, want := range map[string]bool{
		"spoiled": false, "key-000": false, "key-010": false, "key-011": true, "key-109": true,
		before[0]: true, // the server's own
	} {
		if slices.Contains(left, name) != want {
			t.Errorf("%s is left: %v", name, !want)
		}
	}
}

// publishedKeys are the IDs of the keys that servers have published.
func publishedKeys(t *testing.T, store *sqlstore.Store) (ids []string) {
	t.Helper()
	from, to := changelog.RangeOf(publishedAt)
	err := store.Current(publishedAt).Scan(t.Context(), from, to, func(e *sqlstore.Entry) bool {
		ids = append(ids, strings.TrimPrefix(e.Key, publishedAt))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

const publishedAt = "/registry/_plinth/serviceaccountkeys/"
