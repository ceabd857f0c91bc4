package rest

import (
	"k8s.io/apimachinery/pkg/api/errors"
)

// customHandler is handler for custom resources, which upstream serves without its router:
// the path is what RequestInfo makes of it, so that for instance a POST to an object's path
// creates the object in its body (apiextensions-apiserver, crdHandler.ServeHTTP).
func (q *request) customHandler() (func(*request) error, error) {
	verb := q.info.Verb
	across := verb == "list" || verb == "watch"
	if inNamespace := q.info.Namespace != ""; inNamespace != q.kind.Namespaced && (inNamespace || !across) {
		return nil, ErrNoPath
	}
	switch {
	case q.sub == nil && q.info.Subresource != "":
		return nil, errors.NewNotFound(q.groupResource(), q.name)
	case handlers[verb] == nil, q.sub != nil && !q.sub.Can(verb):
		return nil, errors.NewMethodNotSupported(q.groupResource(), verb)
	case verb == "create" && q.kind.Closed:
		return nil, q.errClosed()
	}
	switch verb {
	case "get", "update", "patch", "delete":
		if q.name == "" {
			return nil, errors.NewBadRequest("name must be provided")
		}
		return handlers[verb], q.checkNames(itemMethods, verb, q.kind.Namespaced)
	}
	return handlers[verb], nil
}

// errClosed refuses to create what is about to be deleted with its definition.
func (q *request) errClosed() error {
	err := errors.NewMethodNotSupported(q.groupResource(), "create")
	err.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
	return err
}
