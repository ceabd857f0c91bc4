package rest

import (
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// methods are the verbs of one form of path, by HTTP method. A resource has the path if it has any
// of the verbs.
type methods map[string]string

var (
	collectionMethods    = methods{"GET": "list", "POST": "create", "DELETE": "deletecollection"}
	allNamespacesMethods = methods{"GET": "list"}
	itemMethods          = methods{"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
	partMethods          = methods{"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create", "DELETE": "delete"}
	watchMethods         = methods{"GET": "watch"} // of the deprecated paths below /watch
)

// handlers are all verbs.
var handlers = map[string]func(*request) error{
	"get":              (*request).get,
	"list":             (*request).list,
	"watch":            (*request).watch,
	"create":           (*request).create,
	"update":           (*request).update,
	"patch":            (*request).patch,
	"delete":           (*request).delete,
	"deletecollection": (*request).deleteCollection,
	"connect":          (*request).connect,
}

// routing decides what a request is for, as upstream's router and its handler of custom
// resources do.
type routing struct{ q *request }

// handler finds the verb. A path that the resource does not have is answered with 404, a method
// that the path does not have with 405. If the names in the path are wrong, it returns both the verb
// and an error.
func (r routing) handler() (func(*request) error, error) {
	if r.q.kind.Custom != nil {
		return r.customHandler()
	}
	form, inNamespace := r.form()
	verb, ok := form[r.q.r.Method]
	if !ok || !r.q.can(verb) {
		if r.canAny(form) {
			return nil, response.MethodNotAllowed()
		}
		return nil, response.NotFound()
	}
	if verb == "list" && r.q.info.Verb == "watch" {
		verb = "watch"
	}
	return handlers[verb], r.checkNames(form, verb, inNamespace)
}

// form recognizes a path by how many parts it has, and tells whether it goes through a namespace.
// It is nil if the resource has no such path.
func (r routing) form() (form methods, inNamespace bool) {
	before := 2 // /api/v1
	if r.q.info.APIPrefix == "apis" {
		before = 3
	}
	watching := r.q.info.Verb == "watch" && strings.Contains(r.q.r.URL.Path, "/"+r.q.version+"/watch/")
	if watching {
		before++
	}
	after := len(r.q.info.Parts)
	switch strings.Count(strings.TrimRight(r.q.r.URL.Path, "/"), "/") - before - after {
	case 0:
	case 2:
		inNamespace = true
	default:
		return nil, false
	}
	switch {
	case !r.q.kind.Namespaced && inNamespace:
		return nil, inNamespace
	case r.q.kind.Namespaced && !inNamespace && after > 1 && r.q.kind.Observed == nil:
		return nil, inNamespace
	case watching && after <= 2:
		return watchMethods, inNamespace
	case after == 1 && r.q.kind.Namespaced && !inNamespace && r.q.kind.Observed == nil:
		return allNamespacesMethods, inNamespace
	case after == 1:
		return collectionMethods, inNamespace
	case after == 2:
		return itemMethods, inNamespace
	case after >= 3 && !watching && r.q.connects():
		return r.connectMethods(after > 3), inNamespace
	case after == 3 && !watching:
		return partMethods, inNamespace
	}
	return nil, inNamespace
}

// canAny tells whether the resource or subresource has any of the verbs of a path.
func (r routing) canAny(form methods) bool {
	for _, verb := range form {
		if r.q.can(verb) {
			return true
		}
	}
	return false
}

// checkNames refuses names that cannot be part of a key. An update checks the name in its body
// instead, which must be the same.
func (r routing) checkNames(form methods, verb string, inNamespace bool) error {
	item := form["PUT"] != "" || r.q.sub != nil // the path names an object
	switch {
	case (r.q.namespace == "." || r.q.namespace == "..") && verb != "create" && verb != "update":
		key := "/" + strings.TrimPrefix(r.q.kind.UpstreamPrefix(), object.Root) + r.q.namespace
		if item {
			key += "/" + r.q.name
		}
		return response.Unreasoned(fmt.Errorf("invalid key: %q", key))
	case inNamespace && r.q.namespace == "" && (item || verb == "deletecollection"):
		return apierrors.NewBadRequest("Namespace parameter required.")
	case !item || verb == "update":
		return nil
	case r.q.name == "":
		return apierrors.NewBadRequest("name must be provided")
	}
	if wrong := content.IsPathSegmentName(r.q.name); len(wrong) > 0 {
		return apierrors.NewBadRequest("Name parameter invalid: " + strconv.Quote(r.q.name) + ": " + strings.Join(wrong, ";"))
	}
	return nil
}

// connectMethods are the methods of a subresource with a handler of its own. deep says that the path goes on after the
// subresource.
func (r routing) connectMethods(deep bool) methods {
	if _, ok, _ := r.q.sub.Connect.NewConnectOptions(); deep && !ok {
		return nil
	}
	all := methods{}
	for _, method := range r.q.sub.Connect.ConnectMethods() {
		all[method] = "connect"
	}
	return all
}
