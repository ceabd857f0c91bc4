package guard

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/metrics"
)

// healthOnly lets everybody read /healthz, and members of system:masters do everything.
func healthOnly(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetPath() == "/healthz" || slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// newGuard has a route for each way in which a handler can end.
func newGuard() *Guard {
	none := authenticator.TokenFunc(nil)
	g := New(kind.NewRegistry(nil), Options{
		Authenticator: authn.NewAuthenticator(x509.NewCertPool, none),
		Authorizer:    authorizer.AuthorizerFunc(healthOnly),
		Limits:        Limits{Timeout: time.Minute, Reads: 1, Writes: 1},
		Metrics:       metrics.New(), Logger: slog.New(slog.DiscardHandler),
	})
	g.Route("/healthz", HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })))
	g.Route("/error", func(*Call) error { return errors.New("spoiled") })
	g.Route("/panic", func(*Call) error { panic("over") })
	g.Route("/deadline", func(x *Call) error {
		if until, ok := x.Request().Context().Deadline(); !ok || time.Until(until) > 30*time.Second {
			return errors.New("no deadline of half a minute")
		}
		return nil
	})
	return g
}

var admin = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}

func ask(t *testing.T, g *Guard, who user.Info, path string) *httptest.ResponseRecorder {
	t.Helper()
	r, w := httptest.NewRequestWithContext(t.Context(), "GET", path, nil), httptest.NewRecorder()
	if who != nil {
		r = r.WithContext(authn.WithUser(r.Context(), who))
	}
	g.ServeHTTP(w, r)
	return w
}

// Each request is identified, authorized, given a deadline, answered whatever happens, and
// then gone.
func TestGuard(t *testing.T) {
	g := newGuard()
	for _, tt := range []struct {
		name string
		who  user.Info // nil: anonymous
		path string
		code int
		body string
	}{
		{"public path", nil, "/healthz", 200, "ok"},
		{"not allowed", nil, "/error", 403, `"reason":"Forbidden"`},
		{"not allowed, not there", nil, "/nowhere", 403, `"reason":"Forbidden"`},
		{"not there", admin, "/nowhere", 404, "404 page not found"},
		{"the handler's error", admin, "/error", 500, "spoiled"},
		{"the handler panics", admin, "/panic", 500, "caused apiserver to panic"},
		{"the client's timeout", admin, "/deadline?timeout=30s", 200, ""},
		{"the client's timeout is none", admin, "/deadline?timeout=soon", 400, "invalid timeout specified in the request URL"},
	} {
		w := ask(t, g, tt.who, tt.path)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%s: %d %s", tt.name, w.Code, w.Body)
		}
		if w.Header().Get("Audit-Id") == "" || w.Header().Get("Cache-Control") != "no-cache, private" {
			t.Errorf("%s: header %v", tt.name, w.Header())
		}
	}
	if n := g.Running(); n != 0 || len(g.calls.all()) != 0 {
		t.Errorf("%d requests run", n)
	}
}

// A closed Guard tells clients to come back, before it looks at what they ask.
func TestClosed(t *testing.T) {
	g := newGuard()
	if g.Closed() {
		t.Error("closed from the beginning")
	}
	g.Close()
	w := ask(t, g, admin, "/healthz")
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "apiserver is shutting down") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	<-g.Idle()
}
