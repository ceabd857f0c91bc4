package openapi

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/common"
)

// route is one operation for kube-openapi's builders; it implements common.Route.
type route struct {
	method, path string
	id, tag      string
	description  string
	action       string // post, put, patch, delete, deletecollection, get, list, connect
	gvk          schema.GroupVersionKind
	parameters   []common.Parameter
	consumes     []string
	produces     []string
	body         any
	answer       any
	answers      []int // status codes with answer as their body
}

func (r *route) Method() string                     { return r.method }
func (r *route) Path() string                       { return r.path }
func (r *route) OperationName() string              { return r.id }
func (r *route) Parameters() []common.Parameter     { return r.parameters }
func (r *route) Description() string                { return r.description }
func (r *route) Consumes() []string                 { return r.consumes }
func (r *route) Produces() []string                 { return r.produces }
func (r *route) RequestPayloadSample() interface{}  { return r.body }
func (r *route) ResponsePayloadSample() interface{} { return r.answer }

// Metadata returns the extensions by which kubectl finds the operations of a kind. Routes without a kind have
// none.
func (r *route) Metadata() map[string]interface{} {
	if r.action == "" {
		return nil
	}
	return map[string]interface{}{
		"x-kubernetes-action": r.action,
		"x-kubernetes-group-version-kind": map[string]interface{}{
			"group": r.gvk.Group, "version": r.gvk.Version, "kind": r.gvk.Kind,
		},
	}
}

func (r *route) StatusCodeResponses() []common.StatusCodeResponse {
	out := make([]common.StatusCodeResponse, len(r.answers))
	for i, code := range r.answers {
		out[i] = answer{code, r.answer}
	}
	return out
}

// answer implements common.StatusCodeResponse.
type answer struct {
	code  int
	model any
}

var codeNames = map[int]string{200: "OK", 201: "Created", 202: "Accepted"}

func (a answer) Code() int          { return a.code }
func (a answer) Message() string    { return codeNames[a.code] }
func (a answer) Model() interface{} { return a.model }

// parameter implements common.Parameter. Its fields are exported because the builders compare
// parameters by their JSON.
type parameter struct {
	In                common.ParameterKind
	Field, Type, Help string
	Must              bool
}

func (p parameter) Name() string               { return p.Field }
func (p parameter) Description() string        { return p.Help }
func (p parameter) Required() bool             { return p.Must }
func (p parameter) Kind() common.ParameterKind { return p.In }
func (p parameter) DataType() string           { return p.Type }
func (p parameter) AllowMultiple() bool        { return false }

// container implements common.RouteContainer: all operations of one group version.
type container struct {
	root   string
	routes []common.Route
}

func (c container) RootPath() string                   { return c.root }
func (c container) PathParameters() []common.Parameter { return nil }
func (c container) Routes() []common.Route             { return c.routes }

// optionParameters returns the query parameters of one of upstream's option types.
func optionParameters(options any, help map[string]string) []common.Parameter {
	var out []common.Parameter
	t := reflect.TypeOf(options)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if typ := queryType(f.Type); name != "" && typ != "" {
			out = append(out, parameter{In: common.QueryParameterKind, Field: name, Type: typ, Help: help[name]})
		}
	}
	return out
}

// queryType returns the type of a query parameter; empty for nested objects, which are not parameters.
func queryType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return queryType(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int32, reflect.Int64:
		return "integer"
	}
	return ""
}
