package openapi

import (
	"fmt"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"

	"github.com/plinth-io/plinth/server/kind"
)

// The query parameters of each verb.
var (
	prettyParameter = parameter{In: common.QueryParameterKind, Field: "pretty", Type: "string", Help: "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget)."}
	nameParameter   = func(kind string) parameter {
		return parameter{In: common.PathParameterKind, Field: "name", Type: "string", Must: true, Help: "name of the " + kind}
	}
	namespaceParameter = parameter{In: common.PathParameterKind, Field: "namespace", Type: "string", Must: true, Help: "object name and auth scope, such as for teams and projects"}
	bodyParameter      = parameter{In: common.BodyParameterKind, Field: "body", Must: true}
	optionsParameter   = parameter{In: common.BodyParameterKind, Field: "body"}

	createParameters = optionParameters(metav1.CreateOptions{}, metav1.CreateOptions{}.SwaggerDoc())
	updateParameters = optionParameters(metav1.UpdateOptions{}, metav1.UpdateOptions{}.SwaggerDoc())
	patchParameters  = optionParameters(metav1.PatchOptions{}, metav1.PatchOptions{}.SwaggerDoc())
	deleteParameters = optionParameters(metav1.DeleteOptions{}, metav1.DeleteOptions{}.SwaggerDoc())
	listParameters   = optionParameters(metav1.ListOptions{}, metav1.ListOptions{}.SwaggerDoc())
)

// media are the media types of operations: of objects, of lists and watches, and of patches.
type media struct{ objects, lists, patches []string }

var (
	anyMediaType = []string{"*/*"}
	withoutCBOR  = media{
		objects: []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf},
		lists: []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf,
			runtime.ContentTypeJSON + ";stream=watch", runtime.ContentTypeProtobuf + ";stream=watch"},
		patches: []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType),
			string(types.ApplyYAMLPatchType)},
	}
	withCBOR = media{
		objects: []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR},
		lists: []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR,
			runtime.ContentTypeJSON + ";stream=watch", runtime.ContentTypeProtobuf + ";stream=watch", runtime.ContentTypeCBORSequence},
		patches: []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType),
			string(types.ApplyYAMLPatchType), string(types.ApplyCBORPatchType)},
	}
)

// operations has all routes of one Kind in one version.
type operations struct {
	g      *groupVersion
	k      *kind.Kind
	model  any // of the object
	list   any // of its list
	routes []common.Route
}

// modelName is the name of a type in the generated schemas.
type modelName string

func (m modelName) OpenAPICanonicalTypeName() string { return string(m) }

func operationsOf(g *groupVersion, k *kind.Kind) ([]common.Route, error) {
	o := &operations{g: g, k: k}
	if err := o.findModels(); err != nil {
		return nil, err
	}
	collection := "/" + g.path + "/" + k.Resource
	if k.Namespaced {
		o.allNamespaces(collection)
		collection = "/" + g.path + "/namespaces/{namespace}/" + k.Resource
	}
	o.collection(collection)
	o.object(collection+"/{name}", "", o.model, k.GVK(g.version), k.Verbs)
	for _, s := range k.Subresources {
		if err := o.subresource(collection+"/{name}/"+s.Name, s); err != nil {
			return nil, err
		}
	}
	return o.routes, nil
}

// findModels finds the names of the types of objects and lists.
func (o *operations) findModels() error {
	gv := schema.GroupVersion{Group: o.g.group, Version: o.g.version}
	obj, err := o.k.Codec.Versioned(o.k.Codec.New(), gv)
	if err != nil {
		return fmt.Errorf("find the type of %s: %w", gv.WithKind(o.k.Kind), err)
	}
	o.model = obj
	name := util.GetCanonicalTypeName(obj)
	o.list = modelName(name[:strings.LastIndex(name, ".")+1] + o.k.ListKind)
	return nil
}

func (o *operations) subresourceModel(s *kind.Subresource) (any, schema.GroupVersionKind, error) {
	if s.GVK.Kind == "" || s.Codec == nil {
		return o.model, o.k.GVK(o.g.version), nil
	}
	obj, err := s.Codec.Versioned(s.Codec.New(), s.GVK.GroupVersion())
	if err != nil {
		return nil, s.GVK, fmt.Errorf("find the type of %s: %w", s.GVK, err)
	}
	return obj, s.GVK, nil
}

// allNamespaces adds the collection in all namespaces. A virtual resource has none.
func (o *operations) allNamespaces(path string) {
	if o.k.Can("list") {
		o.add(route{
			method: "GET", path: path, action: "list", id: o.id("list", "", o.k.Kind+"ForAllNamespaces"),
			description: o.listed(),
			parameters:  listParameters, produces: o.g.media.lists, answer: o.list, answers: []int{200},
		})
	}
}

// listed returns the description of the operation that lists, and that watches if the Kind can be watched.
func (o *operations) listed() string {
	if o.k.Can("watch") {
		return "list or watch objects of kind " + o.k.Kind
	}
	return "list objects of kind " + o.k.Kind
}

func (o *operations) collection(path string) {
	if o.k.Can("list") {
		o.add(route{
			method: "GET", path: path, action: "list", id: o.id("list", "", o.scope()+o.k.Kind),
			description: o.listed(),
			parameters:  listParameters, produces: o.g.media.lists, answer: o.list, answers: []int{200},
		})
	}
	if o.k.Can("create") {
		o.add(route{
			method: "POST", path: path, action: "post", id: o.id("create", "", o.scope()+o.k.Kind),
			description: "create" + endpoints.GetArticleForNoun(o.k.Kind, " ") + o.k.Kind,
			parameters:  join(createParameters, bodyParameter), consumes: anyMediaType, body: o.model,
			answer: o.model, answers: []int{200, 201, 202},
		})
	}
	if o.k.Can("deletecollection") {
		o.add(route{
			method: "DELETE", path: path, action: "deletecollection", id: o.id("delete", "Collection", o.scope()+o.k.Kind),
			description: "delete collection of " + o.k.Kind,
			parameters:  join(without(listParameters, deleteParameters, "allowWatchBookmarks", "watch"), optionsParameter),
			consumes:    anyMediaType, body: &metav1.DeleteOptions{},
			answer: &metav1.Status{}, answers: []int{200},
		})
	}
}

// object adds the operations of an object or of its subresource.
func (o *operations) object(path, subresource string, model any, gvk schema.GroupVersionKind, verbs []string) {
	suffix, what := o.scope()+o.k.Kind+camel(subresource), "the specified "+o.k.Kind
	if subresource != "" {
		what = subresource + " of " + what
	}
	for _, verb := range verbs {
		r := route{path: path, gvk: gvk, answer: model, answers: []int{200, 201}}
		if verb == "create" && subresource == "" {
			continue // the collection has this operation
		}
		switch verb {
		case "get":
			r.method, r.action, r.id, r.description = "GET", "get", o.id("read", "", suffix), "read "+what
			r.answers = []int{200}
		case "create":
			r.method, r.action, r.id = "POST", "post", o.id("create", "", suffix)
			r.description = "create " + subresource + " of" + endpoints.GetArticleForNoun(o.k.Kind, " ") + o.k.Kind
			r.parameters, r.consumes, r.body = join(createParameters, bodyParameter), anyMediaType, model
			r.answers = []int{200, 201, 202}
		case "update":
			r.method, r.action, r.id, r.description = "PUT", "put", o.id("replace", "", suffix), "replace "+what
			r.parameters, r.consumes, r.body = join(updateParameters, bodyParameter), anyMediaType, model
		case "patch":
			r.method, r.action, r.id, r.description = "PATCH", "patch", o.id("patch", "", suffix), "partially update "+what
			r.parameters, r.consumes, r.body = join(patchParameters, bodyParameter), o.g.media.patches, &metav1.Patch{}
		case "delete":
			r.method, r.action, r.id, r.description = "DELETE", "delete", o.id("delete", "", suffix), "delete"+endpoints.GetArticleForNoun(o.k.Kind, " ")+o.k.Kind
			r.parameters, r.consumes, r.body = join(deleteParameters, optionsParameter), anyMediaType, &metav1.DeleteOptions{}
			r.answers = []int{200, 202}
			if !o.k.ReturnsDeleted(o.g.version) || o.k.Hooks.MarkTerminating != nil { // for namespaces, as upstream describes it
				r.answer = &metav1.Status{}
			}
		default:
			continue
		}
		r.parameters = join(r.parameters, nameParameter(gvk.Kind))
		o.add(r)
	}
}

// add completes r with the fields that all routes share.
func (o *operations) add(r route) {
	if r.gvk.Empty() {
		r.gvk = o.k.GVK(o.g.version)
	}
	if r.produces == nil {
		r.produces = o.g.media.objects
	}
	if r.consumes == nil {
		r.consumes = anyMediaType
	}
	if r.action != "connect" {
		r.parameters = join(r.parameters, prettyParameter)
	}
	if strings.Contains(r.path, "{namespace}") {
		r.parameters = join(r.parameters, namespaceParameter)
	}
	r.tag = o.tag()
	o.routes = append(o.routes, &r)
}

func (o *operations) tag() string { return uncapitalized(o.groupName()) + "_" + o.g.version }

// id returns upstream's operation ID, from which generated clients derive method names.
func (o *operations) id(verb, collection, rest string) string {
	return verb + o.groupName() + camel(o.g.version) + collection + rest
}

func (o *operations) groupName() string {
	if o.g.group == "" {
		return "Core"
	}
	return camel(strings.TrimSuffix(o.g.group, ".k8s.io"))
}

func (o *operations) scope() string {
	if o.k.Namespaced {
		return "Namespaced"
	}
	return ""
}

// camel joins the words of s with a capital letter each.
func camel(s string) string {
	var b strings.Builder
	start := true
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			start = true
			continue
		}
		if start {
			r = unicode.ToUpper(r)
		}
		b.WriteRune(r)
		start = false
	}
	return b.String()
}

func uncapitalized(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func join(list []common.Parameter, more ...common.Parameter) []common.Parameter {
	return append(list[:len(list):len(list)], more...)
}

// without merges two lists of parameters, without duplicates and without the parameters names.
func without(a, b []common.Parameter, names ...string) []common.Parameter {
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	var out []common.Parameter
	for _, p := range join(a, b...) {
		if !seen[p.Name()] {
			seen[p.Name()] = true
			out = append(out, p)
		}
	}
	return out
}
