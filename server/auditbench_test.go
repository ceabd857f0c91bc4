package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/auth"
)

// BenchmarkAudit is BenchmarkRequest's GET of an object with an audit log, by its level; the
// file is one that takes everything and keeps nothing.
func BenchmarkAudit(b *testing.B) {
	for _, level := range []string{"off", "None", "Metadata", "RequestResponse"} {
		b.Run(level, func(b *testing.B) {
			c := Config{Linger: time.Millisecond, Controllers: []string{}}
			if level != "off" {
				c.Audit = audit.NewOptions()
				c.Audit.PolicyFile, c.Audit.LogOptions.Path = filepath.Join(b.TempDir(), "policy.yaml"), os.DevNull
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
			ctx := auth.WithUser(b.Context(), &user.DefaultInfo{Name: "a", Groups: []string{user.SystemPrivilegedGroup}})
			r := httptest.NewRequest("GET", "/api/v1/namespaces/default", nil).WithContext(ctx)
			b.ReportAllocs()
			for b.Loop() {
				s.handler.ServeHTTP(discard{http.Header{}}, r)
			}
		})
	}
}
