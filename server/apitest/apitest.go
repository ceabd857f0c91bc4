// Package apitest is for tests of what works on the API or on its store: the real API on a
// real database in memory, without the server around it.
package apitest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// API serves all built-in kinds to a client who may do everything.
type API struct {
	Store  *sqlstore.Store
	Kinds  *kind.Registry
	Config *clientrest.Config
	Client kubernetes.Interface
	// DeleteAll is the API's, for Definitions; see rest.API.
	DeleteAll func(ctx context.Context, k *kind.Kind) error
}

// Open returns an API with an empty database. It ends with the test.
func Open(t testing.TB) *API {
	t.Helper()
	return OpenOn(t, storetest.Open(t, storetest.Memory, sqlstore.Options{}))
}

// OpenOn is Open on a store that the test has opened.
func OpenOn(t testing.TB, store *sqlstore.Store) *API {
	t.Helper()
	a := &API{Kinds: kind.NewRegistry(builtin.Priorities()), Store: store}
	api := rest.New(a.Store, a.Kinds, rest.Options{Admission: admission.Chain{admission.NewLifecycle(a.Store)}})
	a.DeleteAll = api.DeleteAll
	server := httptest.NewServer(handler(api))
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	a.Config = &clientrest.Config{Host: server.URL, QPS: -1, WarningHandler: clientrest.NoWarnings{}, Transport: transport}
	a.Kinds.Replace(nil, builtin.Kinds(builtin.Options{Registry: a.Kinds, Store: a.Store, Client: a.Config}))
	a.Client = kubernetes.NewForConfigOrDie(a.Config)
	t.Cleanup(func() {
		api.Drain()
		transport.CloseIdleConnections()
		server.Close()
	})
	return a
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
