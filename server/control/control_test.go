package control_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/admit"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

// cluster is the real API on a real database in memory, served without the outer server:
// these tests are about what the API's own clients do.
type cluster struct {
	store  *sqlstore.Store
	kinds  *kind.Registry
	config *clientrest.Config
	client kubernetes.Interface
}

func openCluster(t testing.TB) *cluster {
	t.Helper()
	log, err := dialects.Open(t.Context(), "sqlite://:memory:", dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{kinds: kind.NewRegistry(builtin.Priorities())}
	if c.store, err = sqlstore.Open(t.Context(), log, sqlstore.Options{}); err != nil {
		t.Fatal(err)
	}
	api := rest.New(c.store, c.kinds, rest.Options{Admission: admit.Chain{admit.NewLifecycle(c.store)}})
	server := httptest.NewServer(handler(api))
	c.config = &clientrest.Config{Host: server.URL, QPS: -1, WarningHandler: clientrest.NoWarnings{}, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	c.kinds.Replace(nil, builtin.Kinds(builtin.Options{Registry: c.kinds, Store: c.store, Client: c.config}))
	c.client = kubernetes.NewForConfigOrDie(c.config)
	t.Cleanup(func() {
		api.Drain()
		c.config.Transport.(*http.Transport).CloseIdleConnections()
		server.Close()
		if err := c.store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return c
}

func handler(api *rest.API) http.Handler {
	paths := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := paths.NewRequestInfo(r)
		if err != nil || !info.IsResourceRequest {
			http.NotFound(w, r)
			return
		}
		api.Serve(w, r, info, admin)
	})
}

// eventually fails the test when ok does not become true. The time is for a machine that
// does nothing else; how fast things are is a benchmark's business.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 60*time.Second {
			t.Fatalf("timed out: %s", what)
		}
	}
}
