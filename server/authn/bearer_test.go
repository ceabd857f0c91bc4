package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/pki"
)

// A token that is no good is not the same as none; a certificate counts for more than a
// token, and a good token for more than a bad certificate.
func TestAuthenticateToken(t *testing.T) {
	ours, theirs := openPKI(t), openPKI(t)
	eve := &user.DefaultInfo{Name: "eve", Groups: []string{user.AllAuthenticated}}
	a := NewAuthenticator(ours.ClientCAs, authenticator.TokenFunc(func(_ context.Context, token string) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: eve}, token == "eve", nil
	}))
	tests := []struct {
		header string
		cert   *x509.Certificate
		want   string // empty: 401
	}{
		{"", nil, user.Anonymous},
		{"Bearer", nil, user.Anonymous},
		{"Basic dTpw", nil, user.Anonymous},
		{"bearer  eve", nil, user.Anonymous}, // upstream ignores a token after two spaces
		{"Bearer eve", nil, "eve"},
		{"bEARER eve and more", nil, "eve"},
		{"Bearer t", nil, ""},
		{"Bearer t", admin(ours), pki.AdminName},
		{"Bearer eve", admin(ours), pki.AdminName},
		{"Bearer eve", admin(theirs), "eve"},
		{"Bearer t", admin(theirs), ""},
		{"", admin(theirs), ""},
	}
	for _, tt := range tests {
		r := httptest.NewRequest("GET", "/api", nil)
		r.Header.Set("Authorization", tt.header)
		if tt.cert != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{tt.cert}}
		}
		who, err := a.User(r)
		got := ""
		if err == nil {
			got = who.GetName()
		}
		if got != tt.want {
			t.Errorf("%q, certificate %v: %q (%v), want %q", tt.header, tt.cert != nil, got, err, tt.want)
		}
		if got != "" && r.Header.Get("Authorization") != "" {
			t.Errorf("%q: it goes on with the request", tt.header)
		}
	}
}

// A browser cannot set headers of a WebSocket: its token is one of the protocols.
func TestAuthenticateWebSocket(t *testing.T) {
	p := openPKI(t)
	a := NewAuthenticator(p.ClientCAs, authenticator.TokenFunc(func(_ context.Context, token string) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: "eve"}}, token == "eve", nil
	}))
	for token, want := range map[string]bool{"eve": true, "t": false} {
		r := httptest.NewRequest("GET", "/api/v1/pods?watch=1", nil)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		protocol := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
		r.Header.Set("Sec-WebSocket-Protocol", protocol+", base64.binary.k8s.io")
		who, err := a.User(r)
		if (err == nil) != want || want && who.GetName() != "eve" {
			t.Errorf("%q: %v, %v", token, who, err)
		}
	}
}
