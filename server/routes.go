package server

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/plinth-io/plinth/server/health"
)

// routes is every path that the server answers. What is not here gets 404, a known path
// with another method 405.
func (s *Server) routes() http.Handler {
	e := echo.New()
	e.Use(s.guard)

	e.Any("/api", s.api)
	e.Any("/api/*", s.api)
	e.Any("/apis", s.api)
	e.Any("/apis/*", s.api)

	e.GET("/", s.handle(s.discovery))
	e.GET("/openapi/v2", s.handle(s.openapi))
	e.GET("/openapi/v3", s.handle(s.openapi))
	e.GET("/openapi/v3/*", s.handle(s.openapi))

	for _, probe := range s.probes() {
		e.Any("/"+probe.Name(), s.handle(probe))
		e.Any("/"+probe.Name()+"/:check", s.check(probe))
	}
	e.GET("/version", s.version)
	e.GET("/version/", s.version)
	e.GET("/metrics", s.handle(s.metrics.Handler()))
	return e
}

// otherPaths are the routes that GET / lists besides discovery's own.
func (s *Server) otherPaths() []string {
	paths := []string{"/metrics", "/openapi/v2", "/openapi/v3", "/version"}
	for _, probe := range s.probes() {
		paths = append(paths, "/"+probe.Name())
		for _, check := range probe.Names() {
			paths = append(paths, "/"+probe.Name()+"/"+check)
		}
	}
	return paths
}

// api serves resources; the shorter paths are discovery's.
func (s *Server) api(c echo.Context) error {
	x := c.(*call)
	if x.info.IsResourceRequest {
		s.rest.Serve(x.Response(), x.Request(), x.info, x.who)
		return nil
	}
	s.discovery.ServeHTTP(x.Response(), x.Request())
	return nil
}

// handle makes a route of a handler of the standard library's kind.
func (s *Server) handle(h http.Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		h.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}

// check answers for one check of a probe, such as /readyz/ping.
func (s *Server) check(p *health.Probe) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := p.Find(c.Param("check"))
		if h == nil {
			return echo.ErrNotFound
		}
		return s.handle(h)(c)
	}
}

func (s *Server) version(c echo.Context) error {
	responsewriters.WriteRawJSON(http.StatusOK, Version(), c.Response())
	return nil
}
