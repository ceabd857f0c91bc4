package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/tokens"
)

// discard is a ResponseWriter that costs nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkRequest is what the server itself does with a request, without the network:
// /version is all guard, a GET of a ConfigMap has the verb in it.
func BenchmarkRequest(b *testing.B) {
	s := New(Config{Linger: time.Millisecond, Controllers: []string{}})
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx := authn.WithUser(b.Context(), &user.DefaultInfo{Name: "a", Groups: []string{user.SystemPrivilegedGroup}})
	create := httptest.NewRequest("POST", "/api/v1/namespaces/default/configmaps",
		strings.NewReader(`{"metadata":{"name":"a"},"data":{"k":"`+strings.Repeat("x", 1000)+`"}}`)).WithContext(ctx)
	create.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if s.guard.ServeHTTP(w, create); w.Code != http.StatusCreated {
		b.Fatal(w.Body)
	}
	for name, path := range map[string]string{"livez": "/livez", "get": "/api/v1/namespaces/default/configmaps/a"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := httptest.NewRequest("GET", path, nil).WithContext(ctx)
			for b.Loop() {
				s.guard.ServeHTTP(discard{http.Header{}}, r)
			}
		})
	}
}

// BenchmarkFresh is a read, and a write that is not stored, each on a goroutine of its own
// as the server gets them from HTTP/2.
func BenchmarkFresh(b *testing.B) {
	s := New(Config{Linger: time.Millisecond, Controllers: []string{}})
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx := authn.WithUser(b.Context(), &user.DefaultInfo{Name: "a", Groups: []string{user.SystemPrivilegedGroup}})
	for _, row := range []struct {
		method, path, body string
		code               int
	}{
		{"GET", "/api/v1/namespaces/default", "", http.StatusOK},
		{"POST", "/api/v1/namespaces/default/configmaps?dryRun=All", `{"metadata":{"name":"a"},"data":{"k":"` + strings.Repeat("x", 1000) + `"}}`, http.StatusCreated},
	} {
		b.Run(row.method, func(b *testing.B) {
			for b.Loop() {
				r := httptest.NewRequest(row.method, row.path, strings.NewReader(row.body)).WithContext(ctx)
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				var handling sync.WaitGroup
				handling.Go(func() { s.http.Handler.ServeHTTP(w, r) })
				if handling.Wait(); w.Code != row.code {
					b.Fatal(w.Body)
				}
			}
		})
	}
}

// BenchmarkAudit is BenchmarkRequest's GET of an object with an audit log, by its level. The
// file is a real one: the log rotates by size, and would rename /dev/null.
func BenchmarkAudit(b *testing.B) {
	for _, level := range []string{"off", "None", "Metadata", "RequestResponse"} {
		b.Run(level, func(b *testing.B) {
			c := Config{Linger: time.Millisecond, Controllers: []string{}}
			if level != "off" {
				c.Audit = audit.NewOptions()
				c.Audit.PolicyFile, c.Audit.LogOptions.Path = filepath.Join(b.TempDir(), "policy.yaml"), filepath.Join(b.TempDir(), "audit.log")
				c.Audit.LogOptions.MaxBackups = 1
				policy := "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: " + level + "}]\n"
				if err := os.WriteFile(c.Audit.PolicyFile, []byte(policy), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			s := New(c)
			if err := s.Open(b.Context()); err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			ctx := authn.WithUser(b.Context(), &user.DefaultInfo{Name: "a", Groups: []string{user.SystemPrivilegedGroup}})
			r := httptest.NewRequest("GET", "/api/v1/namespaces/default", nil).WithContext(ctx)
			b.ReportAllocs()
			for b.Loop() {
				s.guard.ServeHTTP(discard{http.Header{}}, r)
			}
		})
	}
}

// BenchmarkToken is what it costs to know the bearer of a token: as long as it is in the
// cache, and when what it depends on is looked at.
func BenchmarkToken(b *testing.B) {
	for name, c := range map[string]Config{"cached": {}, "looked at": {Tokens: tokens.Options{CacheFor: -1}}} {
		b.Run(name, func(b *testing.B) {
			c.Controllers, c.Linger = []string{}, time.Millisecond
			s := New(c)
			if err := s.Open(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { s.Close() })
			apitest.AddAccount(b, s, "ann")
			header := "Bearer " + apitest.RequestToken(b, s, "ann", authenticationv1.TokenRequestSpec{})
			r, err := http.NewRequest("GET", "/version", nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			authn := authn.NewAuthenticator(s.pki.ClientCAs, s.tokens.With())
			for b.Loop() {
				r.Header.Set("Authorization", header)
				if _, err := authn.User(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
