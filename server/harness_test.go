package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// The helpers of several tests of this package.

// start starts a server, and waits for what it writes by itself.
func start(t *testing.T, c Config, change ...func(*Server)) *Server {
	t.Helper()
	s := open(t, c, change...)
	settle(t, s)
	return s
}

// open starts a server.
func open(t *testing.T, c Config, change ...func(*Server)) *Server {
	t.Helper()
	c.Linger = 10 * time.Millisecond
	if c.History == 0 {
		c.History = time.Hour // tests look back at what they have done, however long that took
	}
	if c.Controllers == nil {
		c.Controllers = []string{} // their requests would count
	}
	s := New(c)
	for _, f := range change {
		f(s)
	}
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

// patient makes a server wait, when it stops, for clients that a busy machine keeps from sending.
func patient(s *Server) { s.drainGrace = 2 * time.Minute }

// idle keeps a server from looking after the cluster's own objects while a test runs: the server's
// own requests count, too, where few are let in.
func idle(s *Server) { s.times.Maintain = time.Hour }

// clientAs returns a client with a certificate of the user.
func clientAs(t *testing.T, s *Server, name string, groups ...string) *http.Client {
	t.Helper()
	client, err := clientrest.HTTPClientFor(configAs(t, s, name, groups...))
	must(t, err)
	return client
}

// configAs returns the configuration of a client with a certificate of the user.
func configAs(t *testing.T, s *Server, name string, groups ...string) *clientrest.Config {
	t.Helper()
	config := clientrest.AnonymousClientConfig(s.RESTConfig())
	var err error
	config.CertData, config.KeyData, err = s.pki.Client(name, groups, time.Hour)
	must(t, err)
	return config
}

// settle waits for what the server writes by itself beside its start.
func settle(t *testing.T, s *Server) {
	t.Helper()
	apitest.Eventually(t, "the server's own objects are there", func() bool {
		for _, own := range builtin.APIServices(s.kinds.Set()) {
			if s.store.Get(apiServiceKeys+own.Name) == nil {
				return false
			}
		}
		if s.fairness != nil && !conditioned(s.store) {
			return false
		}
		trust := s.store.Get("/registry/core/configmaps/kube-system/extension-apiserver-authentication")
		return trust != nil && s.guard.Running() == 0 && s.apiServices.Registered() == nil // which a start waits for a moment only
	})
}

// conditioned tells whether every FlowSchema has its condition.
func conditioned(store *sqlstore.Store) bool {
	schemas := lister.All[flowcontrolv1.FlowSchema](store, object.Prefix(flowcontrolv1.GroupName, "flowschemas"))
	return !slices.ContainsFunc(schemas, func(fs *flowcontrolv1.FlowSchema) bool { return len(fs.Status.Conditions) == 0 })
}

// aloneAndShared runs f with a server that has its database alone, and with two that share one
// (logtest.AloneAndShared).
func aloneAndShared(t *testing.T, c Config, f func(t *testing.T, one, other *Server)) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		one, other := startBoth(t, d, c)
		f(t, one, other)
	})
}

// startBoth starts a server on a fresh database of the dialect, and another one on the same where
// that is possible; otherwise other is one.
func startBoth(t *testing.T, d logtest.Dialect, c Config, change ...func(*Server)) (one, other *Server) {
	t.Helper()
	c.DSN = d.Fresh(t)
	one = start(t, c, change...)
	if d.Servers > 1 {
		return one, start(t, c, change...)
	}
	return one, one
}

// checkStatus asserts that an error is a Status that agrees with the HTTP code.
func checkStatus(t *testing.T, path string, code int, header http.Header, body string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Errorf("%s: %v in %s", path, err, body)
		return
	}
	if status.Kind != "Status" || status.Status != "Failure" || int(status.Code) != code || status.Reason == "" {
		t.Errorf("%s: not a Status of %d: %s", path, code, body)
	}
	if got := header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: content type %s", path, got)
	}
}

// route gives a server, before it is opened, a route of the test's own.
func route(path string, h echo.HandlerFunc) func(*Server) {
	return func(s *Server) {
		s.addRoutes = append(s.addRoutes, func(g *guard.Guard) {
			g.Route(path, func(x *guard.Call) error { return h(x) })
		})
	}
}

// Handlers that panic before and in the middle of their answer, and one that answers when its
// request's time is over.
var (
	panicEarly = route("/early", func(echo.Context) error { panic("too early") })
	panicLate  = route("/late", func(c echo.Context) error {
		fmt.Fprint(c.Response(), "half of")
		c.Response().Flush()
		panic("too late")
	})
	slow = route("/slow", func(c echo.Context) error {
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	})
)
