package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"
	"k8s.io/apiserver/pkg/util/responsewriter"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/plinth-io/plinth/server/openapi"
)

// documents serves the index of OpenAPI v3 with the documents of extension servers, if
// there are any, among the server's own.
func (s *Server) documents(c echo.Context) error {
	x := c.(*call)
	more := s.extensions.Discovered().Documents
	if len(more) == 0 {
		s.openapi.ServeHTTP(x.Response(), x.Request())
		return nil
	}
	body, err := s.mergedIndex(x.Request(), more)
	if err != nil {
		return err
	}
	openapi.ServeIndex(x.Response(), x.Request(), body)
	return nil
}

// mergedIndex is a GET whatever r is: the index answers all methods alike.
func (s *Server) mergedIndex(r *http.Request, more map[string]string) ([]byte, error) {
	r = r.Clone(r.Context())
	r.Method, r.Header = http.MethodGet, http.Header{} // all of it
	own := responsewriter.NewInMemoryResponseWriter()
	s.openapi.ServeHTTP(own, r)
	var index handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(own.Data(), &index); err != nil {
		return nil, fmt.Errorf("read index of OpenAPI: %w", err)
	}
	for name, at := range more {
		index.Paths[name] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: at}
	}
	return json.Marshal(index)
}
