package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/auth"
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
	ctx := auth.WithUser(b.Context(), &user.DefaultInfo{Name: "a", Groups: []string{user.SystemPrivilegedGroup}})
	create := httptest.NewRequest("POST", "/api/v1/namespaces/default/configmaps",
		strings.NewReader(`{"metadata":{"name":"a"},"data":{"k":"`+strings.Repeat("x", 1000)+`"}}`)).WithContext(ctx)
	create.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if s.handler.ServeHTTP(w, create); w.Code != http.StatusCreated {
		b.Fatal(w.Body)
	}
	for name, path := range map[string]string{"livez": "/livez", "get": "/api/v1/namespaces/default/configmaps/a"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := httptest.NewRequest("GET", path, nil).WithContext(ctx)
			for b.Loop() {
				s.handler.ServeHTTP(discard{http.Header{}}, r)
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
	ctx := auth.WithUser(b.Context(), &user.DefaultInfo{Name: "a", Groups: []string{user.SystemPrivilegedGroup}})
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
