package server

import (
	"io"
	"net/http"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	clientrest "k8s.io/client-go/rest"
)

// BenchmarkGet reads one object over HTTPS as somebody who shows a certificate, and as
// somebody who shows a token. Both may do the same: what differs is how they are known.
func BenchmarkGet(b *testing.B) {
	s := New(Config{Controllers: []string{}, Linger: time.Millisecond})
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	addAccount(b, s, "ann")
	withToken := clientrest.AnonymousClientConfig(s.RESTConfig())
	withToken.BearerToken = requestToken(b, s, "ann", authenticationv1.TokenRequestSpec{})
	for name, config := range map[string]*clientrest.Config{"certificate": s.RESTConfig(), "token": withToken} {
		b.Run(name, func(b *testing.B) {
			client, err := clientrest.HTTPClientFor(config)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.Get(s.URL() + "/version")
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					b.Fatal(resp.Status)
				}
			}
		})
	}
}

// BenchmarkToken is what it costs to know the bearer of a token: as long as it is in the
// cache, and when what it depends on is looked at.
func BenchmarkToken(b *testing.B) {
	for name, c := range map[string]Config{"cached": {}, "looked at": uncached} {
		b.Run(name, func(b *testing.B) {
			c.Controllers, c.Linger = []string{}, time.Millisecond
			s := New(c)
			if err := s.Open(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { s.Close() })
			addAccount(b, s, "ann")
			header := "Bearer " + requestToken(b, s, "ann", authenticationv1.TokenRequestSpec{})
			r, err := http.NewRequest("GET", "/version", nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Header.Set("Authorization", header)
				if _, err := s.authn.User(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
