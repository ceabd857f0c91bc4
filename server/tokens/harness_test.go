package tokens_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/tokens"
)

// What several tests of this package need: servers, and clients with tokens.

// uncached looks at what a token depends on at each use.
var uncached = server.Config{Tokens: tokens.Options{CacheFor: -1}}

func start(t *testing.T, c server.Config) *server.Server {
	t.Helper()
	c.Linger = 10 * time.Millisecond
	if c.Controllers == nil {
		c.Controllers = []string{} // their requests would count, and meet routes being added
	}
	s := server.New(c)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// openOn is start for servers that a test closes itself, once or more often.
func openOn(t *testing.T, c server.Config) *server.Server {
	t.Helper()
	c.Linger, c.Controllers = time.Millisecond, []string{}
	s := server.New(c)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// aloneAndShared runs f with a server that has its database alone, and with two that share one
// (logtest.AloneAndShared).
func aloneAndShared(t *testing.T, c server.Config, f func(t *testing.T, one, other *server.Server)) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		c := c
		c.DSN = d.Fresh(t)
		one := start(t, c)
		other := one
		if d.Servers > 1 {
			other = start(t, c)
		}
		f(t, one, other)
	})
}

func refused(t *testing.T, what string, s *server.Server, token string) {
	t.Helper()
	apitest.Eventually(t, what, func() bool { return apitest.WhoAmI(t, s, token) == nil })
}

// headersOf are those of the answer to a get with a token.
func headersOf(t *testing.T, s *server.Server, token, path string) http.Header {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := apitest.Anonymous(t, s).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.Header
}
