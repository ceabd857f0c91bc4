package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func client(t *testing.T, issuer *pair, subject pkix.Name, usage x509.ExtKeyUsage, now time.Time) *x509.Certificate {
	t.Helper()
	made, err := newPair(&x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{usage}}, issuer, now)
	if err != nil {
		t.Fatal(err)
	}
	return made.cert
}

func TestAuthenticate(t *testing.T) {
	ours, theirs := mustOpen(t, "", nil), mustOpen(t, "", nil)
	now := time.Now()
	ada := pkix.Name{CommonName: "ada", Organization: []string{"dev", "ops"}}
	tests := []struct {
		name  string
		certs []*x509.Certificate
		want  string
		bad   bool
	}{
		{"no certificate", nil, "system:anonymous", false},
		{"admin", []*x509.Certificate{ours.admin.cert}, AdminName, false},
		{"user", []*x509.Certificate{client(t, ours.ca, ada, x509.ExtKeyUsageClientAuth, now)}, "ada", false},
		{"stranger", []*x509.Certificate{theirs.admin.cert}, "", true},
		{"serving certificate", []*x509.Certificate{ours.serving.cert}, "", true},
		{"expired", []*x509.Certificate{client(t, ours.ca, ada, x509.ExtKeyUsageClientAuth, now.Add(-2*certificateLife))}, "", true},
		{"no name", []*x509.Certificate{client(t, ours.ca, pkix.Name{}, x509.ExtKeyUsageClientAuth, now)}, "", true},
	}
	a := NewAuthenticator(ours.ClientCAs, nobody)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/api", nil)
			r.TLS = &tls.ConnectionState{PeerCertificates: tt.certs}
			who, err := a.User(r)
			if (err != nil) != tt.bad {
				t.Fatalf("error %v, want one: %v", err, tt.bad)
			}
			if err == nil && who.GetName() != tt.want {
				t.Errorf("user %s, want %s", who.GetName(), tt.want)
			}
		})
	}
}

// TestCredentialsStay has whoever gets a request next see nothing of how its sender is known.
func TestCredentialsStay(t *testing.T) {
	p := mustOpen(t, "", nil)
	r := httptest.NewRequest("GET", "/api", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{p.admin.cert}}
	for _, name := range []string{"Authorization", "X-Remote-User", "X-Remote-Uid", "X-Remote-Group", "X-Remote-Extra-Scopes", "x-remote-extra-Raw"} {
		r.Header[name] = []string{"system:masters"}
	}
	r.Header.Set("X-Remote-Control", "stays")
	if _, err := NewAuthenticator(p.ClientCAs, nobody).User(r); err != nil {
		t.Fatal(err)
	}
	if len(r.Header) != 1 {
		t.Errorf("left: %v", r.Header)
	}
}

func TestAuthenticateGroups(t *testing.T) {
	p := mustOpen(t, "", nil)
	r := httptest.NewRequest("GET", "/api", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{p.admin.cert}}
	response, ok, err := NewAuthenticator(p.ClientCAs, nobody).AuthenticateRequest(r)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	want := []string{user.SystemPrivilegedGroup, user.AllAuthenticated}
	if diff := cmp.Diff(want, response.User.GetGroups()); diff != "" {
		t.Error(diff)
	}
}

// The second request of a connection is answered from memory, but not after the
// certificate's end.
func TestAuthenticateConnection(t *testing.T) {
	p := mustOpen(t, "", nil)
	a := NewAuthenticator(p.ClientCAs, nobody)
	r := httptest.NewRequest("GET", "/api", nil).WithContext(WithConn(context.Background()))
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{p.admin.cert}}
	first, err := a.User(r)
	if err != nil {
		t.Fatal(err)
	}
	a.roots = func() *x509.CertPool { t.Error("verified twice"); return x509.NewCertPool() }
	if second, err := a.User(r); err != nil || second != first {
		t.Errorf("second request: %v, %v", second, err)
	}
	a.now = func() time.Time { return time.Now().Add(2 * certificateLife) }
	if _, err := a.User(r); err == nil {
		t.Error("accepted after the certificate's end")
	}
}

// nobody knows no token.
var nobody = authenticator.TokenFunc(func(context.Context, string) (*authenticator.Response, bool, error) {
	return nil, false, nil
})

// A token that is no good is not the same as none; a certificate counts for more than a
// token, and a good token for more than a bad certificate.
func TestAuthenticateToken(t *testing.T) {
	ours, theirs := mustOpen(t, "", nil), mustOpen(t, "", nil)
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
		{"Bearer t", ours.admin.cert, AdminName},
		{"Bearer eve", ours.admin.cert, AdminName},
		{"Bearer eve", theirs.admin.cert, "eve"},
		{"Bearer t", theirs.admin.cert, ""},
		{"", theirs.admin.cert, ""},
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
	p := mustOpen(t, "", nil)
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

func TestWithUser(t *testing.T) {
	want := &user.DefaultInfo{Name: user.APIServerUser}
	r := httptest.NewRequest("GET", "/api", nil)
	r = r.WithContext(WithUser(r.Context(), want))
	if who, err := new(Authenticator).User(r); who != want || err != nil {
		t.Errorf("got %v, %v", who, err)
	}
}

func TestAuthorize(t *testing.T) {
	admin := &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}}
	ada := &user.DefaultInfo{Name: "ada", Groups: []string{user.AllAuthenticated}}
	robot := &user.DefaultInfo{Name: "system:serviceaccount:n:robot",
		Groups: append(serviceaccount.MakeGroupNames("n"), user.AllAuthenticated)}
	factory := &request.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	}
	tests := []struct {
		who          user.Info
		method, path string
		want         string // message of the 403
	}{
		{admin, "GET", "/api", ""},
		{admin, "DELETE", "/apis/apps/v1/namespaces/n/deployments/d", ""},
		{admin, "GET", "/metrics", ""},
		{anonymous, "GET", "/healthz", ""},
		{anonymous, "GET", "/healthz/ping", ""},
		{anonymous, "GET", "/livez", ""},
		{anonymous, "GET", "/readyz/storage", ""},
		{anonymous, "GET", "/version", ""},
		{anonymous, "POST", "/version", `forbidden: User "system:anonymous" cannot post path "/version"`},
		{anonymous, "GET", "/readyzz", `forbidden: User "system:anonymous" cannot get path "/readyzz"`},
		{anonymous, "GET", "/", `forbidden: User "system:anonymous" cannot get path "/"`},
		{anonymous, "GET", "/api", `forbidden: User "system:anonymous" cannot get path "/api"`},
		{anonymous, "GET", "/api/v1", `forbidden: User "system:anonymous" cannot get path "/api/v1"`},
		{anonymous, "GET", "/metrics", `forbidden: User "system:anonymous" cannot get path "/metrics"`},
		{anonymous, "GET", "/openapi/v3", `forbidden: User "system:anonymous" cannot get path "/openapi/v3"`},
		{anonymous, "GET", "/api/v1/namespaces/default/pods",
			`pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default"`},
		{anonymous, "GET", "/api/v1/nodes?watch=1",
			`nodes is forbidden: User "system:anonymous" cannot watch resource "nodes" in API group "" at the cluster scope`},
		{ada, "PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale",
			`deployments.apps "d" is forbidden: User "ada" cannot patch resource "deployments/scale" in API group "apps" in the namespace "n"`},
		{ada, "GET", "/version", ""},
		{ada, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", ""},
		{ada, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", ""},
		{ada, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", ""},
		{ada, "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
			`tokenreviews.authentication.k8s.io is forbidden: User "ada" cannot create resource "tokenreviews" in API group "authentication.k8s.io" at the cluster scope`},
		{ada, "GET", "/openid/v1/jwks", `forbidden: User "ada" cannot get path "/openid/v1/jwks"`},
		{anonymous, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
			`selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope`},
		{robot, "GET", "/openid/v1/jwks", ""},
		{robot, "GET", "/.well-known/openid-configuration", ""},
		{robot, "PUT", "/openid/v1/jwks", `forbidden: User "system:serviceaccount:n:robot" cannot put path "/openid/v1/jwks"`},
		{robot, "GET", "/api/v1/namespaces/n/pods",
			`pods is forbidden: User "system:serviceaccount:n:robot" cannot list resource "pods" in API group "" in the namespace "n"`},
	}
	for _, tt := range tests {
		r := httptest.NewRequest(tt.method, tt.path, nil)
		info, err := factory.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		err = Check(r.Context(), Authorizer{}, Attributes(tt.who, info))
		got := ""
		if err != nil {
			got = err.Error()
			if status := err.(apierrors.APIStatus).Status(); status.Code != http.StatusForbidden || status.Reason != "Forbidden" {
				t.Errorf("%s %s: %d %s", tt.method, tt.path, status.Code, status.Reason)
			}
		}
		if got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.method, tt.path, got, tt.want)
		}
	}
}

func TestRulesFor(t *testing.T) {
	resources, paths, incomplete, err := Authorizer{}.RulesFor(context.Background(),
		&user.DefaultInfo{Groups: []string{user.SystemPrivilegedGroup}}, "default")
	if err != nil || incomplete || len(resources) != 1 || len(paths) != 1 {
		t.Errorf("rules of system:masters: %v %v %v %v", resources, paths, incomplete, err)
	}
	resources, paths, _, _ = Authorizer{}.RulesFor(context.Background(), anonymous, "default")
	if len(resources) != 0 || len(paths) != 1 {
		t.Errorf("rules of anonymous: %v %v", resources, paths)
	}
	robot := &user.DefaultInfo{Groups: append(serviceaccount.MakeGroupNames("n"), user.AllAuthenticated)}
	resources, paths, _, _ = Authorizer{}.RulesFor(context.Background(), robot, "default")
	if len(resources) != 2 || len(paths) != 2 {
		t.Errorf("rules of a service account: %v %v", resources, paths)
	}
}

var _ authorizer.RuleResolver = Authorizer{}

func BenchmarkUser(b *testing.B) {
	p, err := OpenPKI("", nil)
	if err != nil {
		b.Fatal(err)
	}
	a := NewAuthenticator(p.ClientCAs, nobody)
	for name, ctx := range map[string]context.Context{"connection": WithConn(context.Background()), "request": context.Background()} {
		b.Run("once per "+name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/api", nil).WithContext(ctx)
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{p.admin.cert}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.User(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
