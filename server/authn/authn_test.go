package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/pki"
)

func TestAuthenticate(t *testing.T) {
	ours, theirs := openPKI(t), openPKI(t)
	tests := []struct {
		name  string
		certs []*x509.Certificate
		want  string
		bad   bool
	}{
		{"no certificate", nil, "system:anonymous", false},
		{"admin", []*x509.Certificate{admin(ours)}, pki.AdminName, false},
		{"user", []*x509.Certificate{client(t, ours, "ada", time.Hour)}, "ada", false},
		{"stranger", []*x509.Certificate{admin(theirs)}, "", true},
		{"serving certificate", []*x509.Certificate{serving(ours)}, "", true},
		{"expired", []*x509.Certificate{client(t, ours, "ada", -time.Minute)}, "", true},
		{"no name", []*x509.Certificate{client(t, ours, "", time.Hour)}, "system:anonymous", false},
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
	p := openPKI(t)
	r := httptest.NewRequest("GET", "/api", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{admin(p)}}
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
	p := openPKI(t)
	r := httptest.NewRequest("GET", "/api", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{admin(p)}}
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
	p := openPKI(t)
	a := NewAuthenticator(p.ClientCAs, nobody)
	r := httptest.NewRequest("GET", "/api", nil).WithContext(WithConn(context.Background()))
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{admin(p)}}
	first, err := a.User(r)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := a.User(r); err != nil || second != first {
		t.Errorf("second request: %v, %v", second, err)
	}
	a.Renew()
	if third, err := a.User(r); err != nil || third == first || third.GetName() != first.GetName() {
		t.Errorf("request after authorities have changed: %v, %v", third, err)
	}
	own := a.own
	a.own = x509.NewCertPool
	a.Renew()
	if who, err := a.User(r); err == nil {
		t.Errorf("accepted %v after its authority was taken away", who)
	}
	a.own = own
	a.Renew()
	a.now = func() time.Time { return time.Now().Add(2 * 365 * 24 * time.Hour) }
	if _, err := a.User(r); err == nil {
		t.Error("accepted after the certificate's end")
	}
}

// nobody knows no token.
var nobody = authenticator.TokenFunc(func(context.Context, string) (*authenticator.Response, bool, error) {
	return nil, false, nil
})

func TestWithUser(t *testing.T) {
	want := &user.DefaultInfo{Name: user.APIServerUser}
	r := httptest.NewRequest("GET", "/api", nil)
	r = r.WithContext(WithUser(r.Context(), want))
	if who, err := new(Authenticator).User(r); who != want || err != nil {
		t.Errorf("got %v, %v", who, err)
	}
}

func BenchmarkUser(b *testing.B) {
	p, err := pki.Open("", nil)
	if err != nil {
		b.Fatal(err)
	}
	a := NewAuthenticator(p.ClientCAs, nobody)
	for name, ctx := range map[string]context.Context{"connection": WithConn(context.Background()), "request": context.Background()} {
		b.Run("once per "+name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/api", nil).WithContext(ctx)
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{admin(p)}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.User(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
