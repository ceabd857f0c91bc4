package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/debugging"
	"github.com/plinth-io/plinth/server/fairness"
	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/health"
	"github.com/plinth-io/plinth/server/openapi"
	"github.com/plinth-io/plinth/server/peers"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/server/tokens"
)

// routes are what answers requests.
type routes struct {
	rest       *rest.API
	extensions *aggregator.Services
	discovery  http.Handler
	openapi    *openapi.OpenAPI
	metrics    http.Handler
	slis       http.Handler
	debug      http.Handler // nil: there is no such path
	pages      debugging.Pages
	backup     func(http.ResponseWriter, *http.Request) error
	digest     func(*guard.Call) error
	status     func(*guard.Call) error
	peers      func(*guard.Call) error // requests of other servers on the database
	probes     []*health.Probe
	snapshots  func(*guard.Call) error                    // nil: there is no such path
	fairness   func(*guard.Call) error                    // debug pages; nil: there are none
	documents  map[string]func() (tokens.Document, error) // of the issuer of tokens
}

// add adds every path that the server answers.
func (r *routes) add(g *guard.Guard) {
	g.Route("/api", r.api)
	g.Route("/api/*", r.api)
	g.Route("/apis", r.api)
	g.Route("/apis/*", r.api)

	g.Route("/", guard.HTTP(r.discovery))
	g.Route("/index.html", guard.HTTP(r.discovery))
	g.Route("/openapi/v2", guard.HTTP(r.openapi))
	g.Route("/openapi/v3", guard.HTTP(openapi.MergedIndex(r.openapi, r.extensions.Documents)))
	g.Route("/openapi/v3/*", r.schema)

	for _, probe := range r.probes {
		g.Route("/"+probe.Name(), guard.HTTP(probe))
		for _, check := range slices.Concat(probe.Names(), probe.Aliases()) {
			g.Route("/"+probe.Name()+"/"+check, guard.HTTP(probe.Find(check)))
		}
	}
	for path, document := range r.documents {
		g.Route(path, issuerDocument(document))
		g.Route(path+"/", issuerDocument(document))
	}
	g.Route("/version", serveVersion)
	g.Route("/version/*", serveVersion)
	for path, page := range r.pages {
		g.Route(path, guard.HTTP(page))
	}
	if r.fairness != nil {
		for _, path := range fairness.DebugPaths {
			g.Route(path, r.fairness)
		}
	}
	if r.snapshots != nil {
		g.RouteFor("snapshots", snapshotsPath, r.snapshots)
		g.RouteFor("snapshots", snapshotsPath+"/*", r.snapshots)
	}
	g.RouteFor("backups", backups.Path, func(x *guard.Call) error { return r.backup(x.Response(), x.Request()) })
	g.RouteFor("digests", digestPath, r.digest)
	g.Route(cluster.StatusPath, r.status)
	g.RouteFor(guard.RightOfServers, peers.Path, r.peers)
	g.Route("/metrics", guard.HTTP(r.metrics))
	g.Route("/metrics/slis", guard.HTTP(r.slis))
	if r.debug != nil {
		for _, path := range debugging.Paths {
			if strings.HasSuffix(path, "/") {
				path += "*"
			}
			g.Route(path, guard.HTTP(r.debug))
		}
	}
}

// otherPaths are the routes that GET / lists besides discovery's own.
func (r *routes) otherPaths() []string {
	paths := []string{"/index.html", "/metrics", "/metrics/slis", "/openapi/v2", "/openapi/v3", "/version"}
	paths = slices.AppendSeq(paths, maps.Keys(r.documents))
	paths = slices.AppendSeq(paths, maps.Keys(r.pages))
	for _, probe := range r.probes {
		paths = append(paths, "/"+probe.Name())
		for _, check := range probe.Names() {
			paths = append(paths, "/"+probe.Name()+"/"+check)
		}
	}
	return paths
}

// api serves resources, here or where an extension server has them; the shorter paths are
// discovery's.
func (r *routes) api(x *guard.Call) error {
	if extension := r.extensions.Of(x.Info); extension != nil {
		extension.Serve(x.Response(), x.Request(), x.Info, x.User)
		return nil
	}
	if x.Info.IsResourceRequest {
		r.rest.Serve(x.Response(), x.Request(), x.Info, x.User)
		return nil
	}
	r.discovery.ServeHTTP(x.Response(), x.Request())
	return nil
}

// schema serves the OpenAPI v3 document of a group version, here or where an extension
// server has it.
func (r *routes) schema(x *guard.Call) error {
	if extension := r.extensions.Document(x.Info.Path); extension != nil {
		extension.Serve(x.Response(), x.Request(), x.Info, x.User)
		return nil
	}
	r.openapi.ServeHTTP(x.Response(), x.Request())
	return nil
}

// issuerDocument serves a document of the issuer of tokens.
func issuerDocument(document func() (tokens.Document, error)) func(*guard.Call) error {
	return func(x *guard.Call) error {
		d, err := document()
		if err != nil {
			return err
		}
		if err := response.Routed(x.Request(), d.MediaType); err != nil {
			return err
		}
		d.ServeHTTP(x.Response(), x.Request())
		return nil
	}
}

// serveVersion answers a path that is the API machinery's in upstream, so that its errors
// are too.
func serveVersion(x *guard.Call) error {
	if strings.Trim(x.Param("*"), "/") != "" {
		return response.NotFound()
	}
	if err := response.Routed(x.Request(), "application/json"); err != nil {
		return err
	}
	responsewriters.WriteRawJSON(http.StatusOK, Version(), x.Response())
	return nil
}
