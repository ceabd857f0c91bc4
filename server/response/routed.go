package response

import (
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kube-apiserver's router looks at media types before any handler does, by rules that are
// simpler than those of content negotiation and with words of its own. It does so for
// built-in resources and for discovery, not for custom resources. The rules are those of
// the library that it routes with, github.com/emicklei/go-restful.

// RouteAccepts tells whether the router finds one of types in an Accept header. It knows
// neither q-values nor application/*.
func RouteAccepts(accept string, types []string) bool {
	if accept == "" {
		return true
	}
	for _, clause := range strings.Split(accept, ",") {
		if m := BareType(clause); m == "*/*" || slices.Contains(types, m) {
			return true
		}
	}
	return false
}

// BareType is a media type without parameters and spaces.
func BareType(clause string) string {
	m, _, _ := strings.Cut(clause, ";")
	return strings.Trim(m, " ")
}

// Routed returns the router's error for a request to a path that can only be read, as one of
// these media types; nil if the router lets it through. The router looks for the media types in
// Content-Type too.
func Routed(r *http.Request, types ...string) error {
	if r.Method != http.MethodGet {
		return RouteError(http.StatusMethodNotAllowed, "")
	}
	if media := r.Header.Get("Content-Type"); media != "" && !slices.Contains(types, BareType(media)) {
		if r.ContentLength > 0 {
			return RouteError(http.StatusUnsupportedMediaType, "415: Unsupported Media Type")
		}
		return RouteRefusal(r, nil)
	}
	if RouteAccepts(r.Header.Get("Accept"), types) {
		return nil
	}
	return RouteRefusal(r, types)
}

// RouteRefusal is the router's answer if it finds no route for a media type; it lists types. The
// router takes a write of unknown length for one without a body, and blames the missing body.
func RouteRefusal(r *http.Request, types []string) error {
	there := "\n\nAvailable representations: " + strings.Join(types, ", ")
	writes := r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch
	if writes && r.Header.Get("Content-Length") == "" {
		return RouteError(http.StatusUnsupportedMediaType, "415: Unsupported Media Type"+there)
	}
	return RouteError(http.StatusNotAcceptable, "406: Not Acceptable"+there)
}

// RouteError is an error that the router makes.
func RouteError(code int, text string) error {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", text, 0, false)
}
