package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/authn"
)

// BenchmarkFairness is what priority and fairness adds to a request: that of an admin, who is
// exempt, and that of somebody who may read nothing but the version.
func BenchmarkFairness(b *testing.B) {
	for _, off := range []bool{false, true} {
		s := New(Config{Linger: time.Millisecond, Controllers: []string{}, NoFairness: off})
		if err := s.Open(b.Context()); err != nil {
			b.Fatal(err)
		}
		for _, row := range []struct{ name, group, path string }{
			{"exempt", user.SystemPrivilegedGroup, "/api/v1/namespaces/default"},
			{"limited", user.AllAuthenticated, "/version"},
		} {
			who := &user.DefaultInfo{Name: "ann", Groups: []string{row.group}}
			r := httptest.NewRequest("GET", row.path, nil).WithContext(authn.WithUser(b.Context(), who))
			name := row.name + map[bool]string{false: "", true: "-off"}[off]
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w := discard{http.Header{}}
					s.guard.ServeHTTP(w, r)
				}
			})
		}
		s.Close()
	}
}
