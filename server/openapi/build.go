package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	builtinopenapi "k8s.io/kubernetes/pkg/generated/openapi"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// builtinTypes has the schemas for v3 of all types in definitionsOfTypes. Every builder writes the same
// values to them, so mu is held until the result of a build is encoded.
type builtinTypes struct {
	mu      sync.Mutex
	namer   *apiopenapi.DefinitionNamer
	schemas map[string]common.OpenAPIDefinition
}

// The schemas take ten megabytes, and only documents that are not prebuilt need them. So the garbage
// collector may free them while no document is built.
var keptTypes struct {
	mu    sync.Mutex
	types weak.Pointer[builtinTypes]
}

func typesOfAll() *builtinTypes {
	keptTypes.mu.Lock()
	defer keptTypes.mu.Unlock()
	t := keptTypes.types.Value()
	if t == nil {
		t = &builtinTypes{namer: newNamer()}
		t.schemas = definitionsOfTypes(func(name string) spec.Ref {
			short, _ := t.namer.GetDefinitionName(name)
			return spec.MustCreateRef("#/components/schemas/" + common.EscapeJsonPointer(short))
		})
		keptTypes.types = weak.Make(t)
	}
	return t
}

// definitionsOfTypes returns the schemas of upstream's types and of plinth's own.
func definitionsOfTypes(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := builtinopenapi.GetOpenAPIDefinitions(ref)
	maps.Copy(all, historyv1.OpenAPIDefinitions(ref))
	return all
}

// newNamer names the schemas of these types.
func newNamer() *apiopenapi.DefinitionNamer {
	own := runtime.NewScheme()
	utilruntime.Must(historyv1.AddToScheme(own))
	return apiopenapi.NewDefinitionNamer(append(builtin.Schemes(), own)...)
}

// buildV3 makes one document of v3 as JSON.
func (g *groupVersion) buildV3() ([]byte, error) {
	var specs []*spec3.OpenAPI
	if !g.custom() {
		types := typesOfAll()
		types.mu.Lock()
		defer types.mu.Unlock()
		doc, err := g.buildBuiltin(types)
		if err != nil {
			return nil, err
		}
		specs = append(specs, doc)
	}
	custom, err := g.buildCustom()
	if err != nil {
		return nil, err
	}
	if len(custom) == 0 {
		return json.Marshal(specs[0])
	}
	doc, err := mergeV3(append(specs, custom...))
	if err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// buildBuiltin describes the built-in Kinds of a group version.
func (g *groupVersion) buildBuiltin(types *builtinTypes) (*spec3.OpenAPI, error) {
	routes, err := g.routes()
	if err != nil {
		return nil, err
	}
	config := &common.OpenAPIV3Config{
		Info:                           info(),
		CommonResponses:                map[int]*spec3.Response{401: {ResponseProps: spec3.ResponseProps{Description: "Unauthorized"}}},
		DefaultResponse:                &spec3.Response{ResponseProps: spec3.ResponseProps{Description: "Default Response."}},
		GetOperationIDAndTagsFromRoute: idAndTags,
		GetDefinitionName:              types.namer.GetDefinitionName,
		Definitions:                    types.schemas,
		SecuritySchemes: spec3.SecuritySchemes{bearerToken: {SecuritySchemeProps: spec3.SecuritySchemeProps{
			Type: "apiKey", Name: "authorization", In: "header", Description: bearerHelp,
		}}},
	}
	doc, err := builder3.BuildOpenAPISpecFromRoutes([]common.RouteContainer{routes}, config)
	if err != nil {
		return nil, fmt.Errorf("build OpenAPI v3: %w", err)
	}
	if g.watched() {
		events, err := builder3.BuildOpenAPIDefinitionsForResources(config, watchEvent)
		if err != nil {
			return nil, fmt.Errorf("build OpenAPI v3 of watches: %w", err)
		}
		for name, schema := range events {
			doc.Components.Schemas[name] = schema
		}
	}
	g.leaveOwnKinds(doc)
	return doc, nil
}

// leaveOwnKinds removes kinds from types that all groups have, except the group version's own and the core's
// (upstream: k8s.io/apiserver/pkg/server/routes/openapi.go).
func (g *groupVersion) leaveOwnKinds(doc *spec3.OpenAPI) {
	if g.version == "" || doc.Components == nil {
		return
	}
	const kinds = "x-kubernetes-group-version-kind"
	for _, name := range []string{watchEvent, deleteOptions} {
		schema := doc.Components.Schemas[name]
		if schema == nil {
			continue
		}
		all, _ := schema.Extensions[kinds].([]any)
		schema.Extensions[kinds] = slices.DeleteFunc(slices.Clone(all), func(k any) bool {
			gvk, _ := k.(map[string]any)
			own := gvk["group"] == g.group && gvk["version"] == g.version
			return !own && (gvk["group"] != "" || gvk["version"] != "v1")
		})
	}
}

// buildBuiltinV2 describes all built-in Kinds.
func (s *description) buildBuiltinV2() (*spec.Swagger, error) {
	var containers []common.RouteContainer
	for _, path := range s.paths {
		if s.groups[path].custom() {
			continue
		}
		routes, err := s.groups[path].routes()
		if err != nil {
			return nil, err
		}
		containers = append(containers, routes)
	}
	namer := newNamer()
	config := &common.Config{
		Info:                           info(),
		ProtocolList:                   []string{"https"},
		CommonResponses:                map[int]spec.Response{401: {ResponseProps: spec.ResponseProps{Description: "Unauthorized"}}},
		DefaultResponse:                &spec.Response{ResponseProps: spec.ResponseProps{Description: "Default Response."}},
		GetOperationIDAndTagsFromRoute: idAndTags,
		GetDefinitionName:              namer.GetDefinitionName,
		GetDefinitions:                 definitionsOfTypes,
		SecurityDefinitions: &spec.SecurityDefinitions{bearerToken: {SecuritySchemeProps: spec.SecuritySchemeProps{
			Type: "apiKey", Name: "authorization", In: "header", Description: bearerHelp,
		}}},
		DefaultSecurity: []map[string][]string{{bearerToken: {}}},
	}
	doc, err := builder.BuildOpenAPISpecFromRoutes(containers, config)
	if err != nil {
		return nil, fmt.Errorf("build OpenAPI v2: %w", err)
	}
	events, err := builder.BuildOpenAPIDefinitionsForResources(config, watchEvent)
	if err != nil {
		return nil, fmt.Errorf("build OpenAPI v2 of watches: %w", err)
	}
	for name, schema := range events.Definitions {
		doc.Definitions[name] = schema
	}
	// Clients of v2 cannot read defaults that are objects, as upstream found out.
	doc.Definitions = handler.PruneDefaults(doc.Definitions)
	return doc, nil
}

// watchEvent is the type of the items in the stream of a watch. No route refers to it, because the same
// routes answer with lists, but generated clients need it.
var (
	watchEvent    = metav1.WatchEvent{}.OpenAPIModelName()
	deleteOptions = metav1.DeleteOptions{}.OpenAPIModelName()
)

// watched reports whether a built-in Kind can be watched.
func (g *groupVersion) watched() bool {
	for _, k := range g.kinds {
		if k.Custom == nil && k.Can("watch") {
			return true
		}
	}
	return false
}

const (
	bearerToken = "BearerToken"
	bearerHelp  = "Bearer Token authentication"
)

func (g *groupVersion) routes() (container, error) {
	c := container{root: "/" + g.path}
	if r := g.overview(); r != nil {
		c.routes = append(c.routes, r)
	}
	for _, k := range g.kinds {
		if k.Custom != nil {
			continue
		}
		routes, err := operationsOf(g, k)
		if err != nil {
			return c, err
		}
		c.routes = append(c.routes, routes...)
	}
	return c, nil
}

func info() *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: kind.Emulated().String()}}
}

func idAndTags(r common.Route) (string, []string, error) {
	own := r.(*route)
	return own.id, []string{own.tag}, nil
}

// toProto encodes a document of v3.
func toProto(body []byte) ([]byte, error) {
	b, err := handler3.ToV3ProtoBinary(body)
	if err != nil {
		return nil, fmt.Errorf("encode as protobuf: %w", err)
	}
	return b, nil
}
