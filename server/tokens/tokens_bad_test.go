package tokens_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
)

// TestBadTokens has a row for each way in which a token can be wrong. Each gets the same
// short answer, and none is in the log. The server believes keys that others have published,
// so that whatever a token calls its key is looked up.
func TestBadTokens(t *testing.T) {
	var log apitest.Lines
	c := uncached
	c.DSN, c.Log = logtest.Postgres(t), log.Log()
	s := start(t, c)
	apitest.AddAccount(t, s, "ann")
	good := apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{})
	if apitest.WhoAmI(t, s, good) == nil {
		t.Fatal("a good token is refused")
	}
	parts := strings.Split(good, ".")
	parsed, err := jwt.ParseSigned(good)
	if err != nil {
		t.Fatal(err)
	}
	keys, header := readKeys(t, s, good), parsed.Headers[0]
	tests := map[string]string{
		"nonsense":                "nonsense",
		"dots":                    "...",
		"empty parts":             "..",
		"not a JWT":               "{}.{}.{}",
		"JSON":                    `{"payload":"x","signatures":[]}`,
		"no signature":            parts[0] + "." + parts[1] + ".",
		"another signature":       parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
		"another's claims":        parts[0] + "." + parts[1][:len(parts[1])-4] + "." + parts[2],
		"signed by nobody":        encode(`{"alg":"none"}`) + "." + parts[1] + ".",
		"no key of its own":       encode(`{"alg":"ES256"}`) + "." + parts[1] + "." + parts[2],
		"key that nobody has":     encode(`{"alg":"ES256","kid":"`+strings.Repeat("k", 43)+`"}`) + "." + parts[1] + "." + parts[2],
		"key that is a path":      encode(`{"alg":"ES256","kid":"../../core/secrets/default/s"}`) + "." + parts[1] + "." + parts[2],
		"signed by its own key":   forged(t, jose.SigningKey{Algorithm: jose.ES256, Key: mustECKey(t)}, header.KeyID, parts[1]),
		"public key as a secret":  forged(t, jose.SigningKey{Algorithm: jose.HS256, Key: publicPEM(t, keys.Key(header.KeyID)[0])}, header.KeyID, parts[1]),
		"issuer of somebody else": encode(`{"alg":"ES256"}`) + "." + encode(`{"iss":"https://example.com"}`) + "." + parts[2],
		"64 KiB":                  strings.Repeat("x", 64<<10),
		"300 KiB of claims":       parts[0] + "." + strings.Repeat(parts[1], 300<<10/len(parts[1])) + "." + parts[2],
		"300 KiB of dots":         strings.Repeat(".", 300<<10),
		"deep claims":             parts[0] + "." + encode(strings.Repeat("[", 20<<10)) + "." + parts[2],
	}
	client := apitest.Anonymous(t, s)
	for name, token := range tests {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		code, _, body := apitest.Send(t, client, req)
		const want = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`
		if code != http.StatusUnauthorized || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %.300s", name, code, body)
		}
	}
	for name, token := range tests {
		if len(token) > 10 && strings.Contains(log.All(), token) {
			t.Errorf("%s is in the log", name)
		}
	}
	if strings.Contains(log.All(), parts[1]) {
		t.Error("a token is in the log")
	}
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// forged signs the claims of another token, and says that a certain key did.
func forged(t *testing.T, by jose.SigningKey, keyID, claims string) string {
	t.Helper()
	signer, err := jose.NewSigner(by, (&jose.SignerOptions{}).WithHeader("kid", keyID))
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.RawURLEncoding.DecodeString(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func publicPEM(t *testing.T, key jose.JSONWebKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
