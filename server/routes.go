package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/plinth-io/plinth/server/rest"
)

// routes is every path that the server answers, each for all methods: handlers refuse
// those that they do not have. What is not here gets 404.
func (s *Server) routes() router {
	e := echo.New()
	e.Use(s.guard)
	// With no handler for a method of its own, a path's "not found" handler gets them all;
	// echo's Any knows only some methods.
	any := e.RouteNotFound

	any("/api", s.api)
	any("/api/*", s.api)
	any("/apis", s.api)
	any("/apis/*", s.api)

	any("/", s.handle(s.discovery))
	any("/index.html", s.handle(s.discovery))
	any("/openapi/v2", s.handle(s.openapi))
	any("/openapi/v3", s.documents)
	any("/openapi/v3/*", s.document)

	for _, probe := range s.probes() {
		any("/"+probe.Name(), s.handle(probe))
		for _, check := range probe.Names() {
			any("/"+probe.Name()+"/"+check, s.handle(probe.Find(check)))
		}
	}
	for path, document := range s.issuer() {
		any(path, document)
		any(path+"/", document)
	}
	any("/version", s.version)
	any("/version/*", s.version)
	any("/metrics", s.handle(s.metrics.Handler()))
	return router{e}
}

// router matches paths as they are decoded, as upstream's does: echo would take the
// encoded one where the two are not the same.
type router struct{ *echo.Echo }

func (r router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	req.URL.RawPath = ""
	growStack(req.Method)
	r.Echo.ServeHTTP(w, req)
}

// otherPaths are the routes that GET / lists besides discovery's own.
func (s *Server) otherPaths() []string {
	paths := []string{"/index.html", "/metrics", "/openapi/v2", "/openapi/v3", "/version"}
	paths = slices.AppendSeq(paths, maps.Keys(s.issuer()))
	for _, probe := range s.probes() {
		paths = append(paths, "/"+probe.Name())
		for _, check := range probe.Names() {
			paths = append(paths, "/"+probe.Name()+"/"+check)
		}
	}
	return paths
}

// api serves resources, here or where an extension server has them; the shorter paths are
// discovery's.
func (s *Server) api(c echo.Context) error {
	x := c.(*call)
	if extension := s.extensions.Of(x.info); extension != nil {
		extension.Serve(x.Response(), x.Request(), x.info, x.who)
		return nil
	}
	if x.info.IsResourceRequest {
		s.rest.Serve(x.Response(), x.Request(), x.info, x.who)
		return nil
	}
	s.discovery.ServeHTTP(x.Response(), x.Request())
	return nil
}

// document serves a document of OpenAPI v3, here or where an extension server has it.
func (s *Server) document(c echo.Context) error {
	x := c.(*call)
	if extension := s.extensions.Document(x.info.Path); extension != nil {
		extension.Serve(x.Response(), x.Request(), x.info, x.who)
		return nil
	}
	s.openapi.ServeHTTP(x.Response(), x.Request())
	return nil
}

// handle makes a route of a handler of the standard library's kind.
func (s *Server) handle(h http.Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		h.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}

// version is a path of the API machinery in upstream, so that its errors are too.
func (s *Server) version(c echo.Context) error {
	if strings.Trim(c.Param("*"), "/") != "" {
		return rest.ErrNotFound()
	}
	if err := rest.Routed(c.Request(), "application/json"); err != nil {
		return err
	}
	responsewriters.WriteRawJSON(http.StatusOK, Version(), c.Response())
	return nil
}
