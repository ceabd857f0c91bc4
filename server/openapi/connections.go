package openapi

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/plinth-io/plinth/server/kind"
)

// pathParameter is the rest of the path of a proxy.
var pathParameter = parameter{In: common.PathParameterKind, Field: "path", Type: "string", Must: true, Help: "path to the resource"}

// text is the model of an answer that is not an object.
const text = ""

// subresource adds the operations of one subresource.
func (o *operations) subresource(path string, s *kind.Subresource) error {
	model, gvk, err := o.subresourceModel(s)
	if err != nil {
		return err
	}
	switch {
	case s.Connect != nil:
		options, deep, _ := s.Connect.NewConnectOptions()
		parameters, err := o.queryOf(options)
		if err != nil {
			return err
		}
		o.connections(path, s, "", parameters)
		if deep {
			o.connections(path+"/{path}", s, "WithPath", join(parameters, pathParameter))
		}
	case s.Stream != nil:
		options, _, _ := s.Stream.NewGetOptions()
		parameters, err := o.queryOf(options)
		if err != nil {
			return err
		}
		o.add(route{
			method: "GET", path: path, gvk: gvk, action: "get", id: o.id("read", "", o.scope()+o.k.Kind+camel(s.Name)),
			description: "read " + s.Name + " of the specified " + o.k.Kind,
			parameters:  join(parameters, nameParameter(gvk.Kind)), produces: append([]string{"text/plain"}, o.g.media.objects...),
			answer: text, answers: []int{200},
		})
	case s.Post != nil:
		o.add(route{
			method: "POST", path: path, gvk: gvk, action: "post", id: o.id("create", "", o.scope()+o.k.Kind+camel(s.Name)),
			description: "create " + s.Name + " of" + endpoints.GetArticleForNoun(o.k.Kind, " ") + o.k.Kind,
			parameters:  join(createParameters, bodyParameter, nameParameter(gvk.Kind)), body: model,
			answer: model, answers: []int{200, 201, 202},
		})
	default:
		o.object(path, s.Name, model, gvk, s.Verbs)
	}
	return nil
}

// connections adds the operations of a subresource that connects to a pod, node or Service.
func (o *operations) connections(path string, s *kind.Subresource, suffix string, parameters []common.Parameter) {
	methods := slices.Clone(s.Connect.ConnectMethods())
	slices.Sort(methods)
	for _, method := range methods {
		o.add(route{
			method: method, path: path, gvk: s.GVK, action: "connect",
			id:          o.id("connect", camel(strings.ToLower(method)), o.scope()+o.k.Kind+camel(s.Name)+suffix),
			description: "connect " + method + " requests to " + s.Name + " of " + o.k.Kind,
			parameters:  join(parameters, nameParameter(s.GVK.Kind)), produces: anyMediaType,
			answer: text, answers: []int{200},
		})
	}
}

// queryOf returns the query parameters from which options in hub form are decoded.
func (o *operations) queryOf(options runtime.Object) ([]common.Parameter, error) {
	gvk := o.k.GVK(o.g.version).GroupVersion().WithKind(reflect.TypeOf(options).Elem().Name())
	obj, err := o.k.Codec.Objects(context.Background()).Creater.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("find the type of %s: %w", gvk, err)
	}
	var help map[string]string
	if documented, ok := obj.(interface{ SwaggerDoc() map[string]string }); ok {
		help = documented.SwaggerDoc()
	}
	return optionParameters(reflect.ValueOf(obj).Elem().Interface(), help), nil
}
