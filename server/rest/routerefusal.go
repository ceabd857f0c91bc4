package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/plinth-io/plinth/server/response"
)

// refusal is the error with which upstream's router refuses the request's media types, see response.Routed; nil if the
// router accepts them.
func (r routing) refusal() error {
	if r.q.kind.Custom != nil || r.q.connects() {
		return nil
	}
	if r.q.info.Verb == "patch" {
		if err := r.patchRefusal(); err != nil {
			return err
		}
	}
	if r.q.refused == nil {
		return nil
	}
	offer := r.q.offer()
	types := offer.MediaTypes()
	if r.q.info.Verb == "list" || r.q.info.Verb == "watch" {
		types = append(types, offer.StreamTypes()...)
	}
	if r.q.sub != nil && r.q.sub.Stream != nil {
		types = append([]string{"text/plain"}, types...) // for the router, not for negotiation
	}
	if response.RouteAccepts(r.q.r.Header.Get("Accept"), types) {
		return nil
	}
	return response.RouteRefusal(r.q.r, types)
}

// patchRefusal is the router's error for the Content-Type of a patch. If the body is
// missing, upstream's router has no routes left and answers as if Accept could not be satisfied.
func (r routing) patchRefusal() error {
	types := r.q.patchTypes()
	for clause := range strings.SplitSeq(r.q.r.Header.Get("Content-Type"), ",") {
		if slices.Contains(types, response.BareType(clause)) {
			return nil
		}
	}
	if r.q.r.ContentLength > 0 {
		return response.RouteError(http.StatusUnsupportedMediaType, "415: Unsupported Media Type")
	}
	return response.RouteRefusal(r.q.r, nil)
}
