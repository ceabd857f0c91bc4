package rest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// methods are the verbs that the methods of one form of path stand for. A resource has the
// path if it has any of the verbs.
type methods map[string]string

var (
	collectionMethods    = methods{"GET": "list", "POST": "create", "DELETE": "deletecollection"}
	allNamespacesMethods = methods{"GET": "list"}
	itemMethods          = methods{"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
	partMethods          = methods{"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create", "DELETE": "delete"}
	watchMethods         = methods{"GET": "watch"} // of the deprecated paths below /watch
)

// handlers is every way to touch a resource.
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

// handler finds what to do. A path that the resource does not have is 404, another method
// than its own 405.
func (q *request) handler() (func(*request) error, error) {
	if q.kind.Custom() {
		return q.customHandler()
	}
	form, inNamespace := q.form()
	verb, ok := form[q.r.Method]
	if !ok || !q.can(verb) {
		if q.canAny(form) {
			return nil, ErrNotAllowed()
		}
		return nil, ErrNotFound()
	}
	if verb == "list" && q.info.Verb == "watch" {
		verb = "watch"
	}
	return handlers[verb], q.checkNames(form, verb, inNamespace)
}

// form recognizes a path by how many parts it has, nil if it is none of the resource's,
// and tells whether it goes through a namespace.
func (q *request) form() (form methods, inNamespace bool) {
	before := 2 // /api/v1
	if q.info.APIPrefix == "apis" {
		before = 3
	}
	watching := q.info.Verb == "watch" && strings.Contains(q.r.URL.Path, "/"+q.version+"/watch/")
	if watching {
		before++
	}
	after := len(q.info.Parts)
	switch strings.Count(strings.TrimRight(q.r.URL.Path, "/"), "/") - before - after {
	case 0:
	case 2:
		inNamespace = true
	default:
		return nil, false
	}
	switch {
	case !q.kind.Namespaced && inNamespace:
		return nil, inNamespace
	case q.kind.Namespaced && !inNamespace && after > 1:
		return nil, inNamespace
	case watching && after <= 2:
		return watchMethods, inNamespace
	case after == 1 && q.kind.Namespaced && !inNamespace:
		return allNamespacesMethods, inNamespace
	case after == 1:
		return collectionMethods, inNamespace
	case after == 2:
		return itemMethods, inNamespace
	case after >= 3 && !watching && q.connects():
		return q.connectMethods(after > 3), inNamespace
	case after == 3 && !watching:
		return partMethods, inNamespace
	}
	return nil, inNamespace
}

// can tells whether the resource, or the subresource asked for, has the verb.
func (q *request) can(verb string) bool {
	if q.sub != nil {
		return q.sub.Can(verb) || verb == "connect"
	}
	return q.kind.Can(verb)
}

func (q *request) canAny(form methods) bool {
	for _, verb := range form {
		if q.can(verb) {
			return true
		}
	}
	return false
}

// checkNames refuses what cannot be part of a key. For an update the name in the body is
// checked, which must be the same.
func (q *request) checkNames(form methods, verb string, inNamespace bool) error {
	item := form["PUT"] != "" || q.sub != nil // an object, or a part of it
	switch {
	case (q.namespace == "." || q.namespace == "..") && verb != "create" && verb != "update":
		key := strings.TrimPrefix(q.kind.UpstreamPrefix, "/registry") + q.namespace
		if item {
			key += "/" + q.name
		}
		return unreasoned(fmt.Errorf("invalid key: %q", key))
	case inNamespace && q.namespace == "" && (item || verb == "deletecollection"):
		return errors.NewBadRequest("Namespace parameter required.")
	case !item || verb == "update":
		return nil
	case q.name == "":
		return errors.NewBadRequest("name must be provided")
	}
	if wrong := path.IsValidPathSegmentName(q.name); len(wrong) > 0 {
		return errors.NewBadRequest("Name parameter invalid: " + strconv.Quote(q.name) + ": " + strings.Join(wrong, ";"))
	}
	return nil
}

// ErrNotFound is upstream's answer for a path that no resource has.
func ErrNotFound() error { return pathError(http.StatusNotFound) }

// ErrNotAllowed is its answer for a method that a path does not have.
func ErrNotAllowed() error { return pathError(http.StatusMethodNotAllowed) }

func pathError(code int) error {
	return errors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
}
