package openapi

import (
	"fmt"

	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	generated "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// buildV3 makes the document of one group version. The schemas of all of Kubernetes are
// instantiated for it, used as far as the routes refer to them, and let go.
func (g *groupVersion) buildV3() ([]byte, error) {
	routes, err := g.routes()
	if err != nil {
		return nil, err
	}
	namer := apiopenapi.NewDefinitionNamer(builtin.Schemes()...)
	doc, err := builder3.BuildOpenAPISpecFromRoutes([]common.RouteContainer{routes}, &common.OpenAPIV3Config{
		Info:                           info(),
		CommonResponses:                map[int]*spec3.Response{401: {ResponseProps: spec3.ResponseProps{Description: "Unauthorized"}}},
		DefaultResponse:                &spec3.Response{ResponseProps: spec3.ResponseProps{Description: "Default Response."}},
		GetOperationIDAndTagsFromRoute: idAndTags,
		GetDefinitionName:              namer.GetDefinitionName,
		GetDefinitions:                 generated.GetOpenAPIDefinitions,
	})
	if err != nil {
		return nil, fmt.Errorf("build OpenAPI v3: %w", err)
	}
	return marshal(doc)
}

// buildV2 makes the one document of everything.
func (s *description) buildV2() ([]byte, error) {
	var containers []common.RouteContainer
	for _, path := range s.paths() {
		routes, err := s.groups[path].routes()
		if err != nil {
			return nil, err
		}
		containers = append(containers, routes)
	}
	namer := apiopenapi.NewDefinitionNamer(builtin.Schemes()...)
	doc, err := builder.BuildOpenAPISpecFromRoutes(containers, &common.Config{
		Info:                           info(),
		ProtocolList:                   []string{"https"},
		CommonResponses:                map[int]spec.Response{401: {ResponseProps: spec.ResponseProps{Description: "Unauthorized"}}},
		DefaultResponse:                &spec.Response{ResponseProps: spec.ResponseProps{Description: "Default Response."}},
		GetOperationIDAndTagsFromRoute: idAndTags,
		GetDefinitionName:              namer.GetDefinitionName,
		GetDefinitions:                 generated.GetOpenAPIDefinitions,
	})
	if err != nil {
		return nil, fmt.Errorf("build OpenAPI v2: %w", err)
	}
	// Clients of v2 choke on defaults of objects, as upstream found out.
	doc.Definitions = handler.PruneDefaults(doc.Definitions)
	return marshal(doc)
}

func (g *groupVersion) routes() (container, error) {
	c := container{root: "/" + g.path}
	for _, k := range g.kinds {
		routes, err := operationsOf(g, k)
		if err != nil {
			return c, err
		}
		c.routes = append(c.routes, routes...)
	}
	return c, nil
}

func info() *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: "1.33"}}
}

func idAndTags(r common.Route) (string, []string, error) {
	own := r.(*route)
	return own.id, []string{own.tag}, nil
}
