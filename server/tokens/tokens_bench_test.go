package tokens_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
)

// BenchmarkGet reads one object over HTTPS as somebody who shows a certificate, and as
// somebody who shows a token. Both may do the same: what differs is how they are known.
func BenchmarkGet(b *testing.B) {
	s := server.New(server.Config{Controllers: []string{}, Linger: time.Millisecond})
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	apitest.AddAccount(b, s, "ann")
	withToken := clientrest.AnonymousClientConfig(s.RESTConfig())
	withToken.BearerToken = apitest.RequestToken(b, s, "ann", authenticationv1.TokenRequestSpec{})
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
