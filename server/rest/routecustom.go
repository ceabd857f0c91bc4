package rest

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plinth-io/plinth/server/response"
)

// customHandler is handler for custom resources, which upstream serves without its router
// (apiextensions-apiserver, crdHandler.ServeHTTP). RequestInfo alone decides what a path means, so
// that for instance a POST to an object's path creates the object in the body.
func (r routing) customHandler() (func(*request) error, error) {
	verb := r.q.info.Verb
	across := verb == "list" || verb == "watch"
	if inNamespace := r.q.info.Namespace != ""; inNamespace != r.q.kind.Namespaced && (inNamespace || !across) {
		return nil, response.ErrNoPath
	}
	if r.q.kind.Custom.Broken {
		return nil, apierrors.NewInternalError(errors.New("error resolving resource"))
	}
	switch {
	case r.q.sub == nil && r.q.info.Subresource != "":
		return nil, apierrors.NewNotFound(r.q.groupResource(), r.q.name)
	case handlers[verb] == nil, r.q.sub != nil && !r.q.sub.Can(verb):
		return nil, apierrors.NewMethodNotSupported(r.q.groupResource(), verb)
	}
	switch verb {
	case "get", "update", "patch", "delete":
		if r.q.name == "" {
			return handlers[verb], apierrors.NewBadRequest("name must be provided")
		}
		return handlers[verb], r.checkNames(itemMethods, verb, r.q.kind.Namespaced)
	}
	return handlers[verb], nil
}
