package rest

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kube-apiserver's router looks at media types before any handler does, by rules that are
// simpler than those of content negotiation and with words of its own. It does so for
// built-in resources and for discovery, not for custom resources. The rules are those of
// the library that it routes with, github.com/emicklei/go-restful.

// routeAccepts tells whether the router finds one of types in an Accept header. It knows
// neither q-values nor application/*.
func routeAccepts(accept string, types []string) bool {
	if accept == "" {
		return true
	}
	for _, clause := range strings.Split(accept, ",") {
		if m := bareType(clause); m == "*/*" || slices.Contains(types, m) {
			return true
		}
	}
	return false
}

// bareType is a media type without parameters and spaces.
func bareType(clause string) string {
	m, _, _ := strings.Cut(clause, ";")
	return strings.Trim(m, " ")
}

// Routed is what the router refuses of a path that can only be read, and as one of these
// media types. It looks for them in Content-Type too.
func Routed(r *http.Request, types ...string) error {
	if r.Method != http.MethodGet {
		return routeError(http.StatusMethodNotAllowed, "")
	}
	if media := r.Header.Get("Content-Type"); media != "" && !slices.Contains(types, bareType(media)) {
		if r.ContentLength > 0 {
			return routeError(http.StatusUnsupportedMediaType, "415: Unsupported Media Type")
		}
		return routeRefusal(r, nil)
	}
	if routeAccepts(r.Header.Get("Accept"), types) {
		return nil
	}
	return routeRefusal(r, types)
}

// routed is what the router refuses, nil if it lets the request through to the verb.
func (q *request) routed() error {
	if q.kind.NoProtobuf || q.connects() {
		return nil
	}
	if q.info.Verb == "patch" {
		if err := q.routedPatch(); err != nil {
			return err
		}
	}
	if q.refused == nil {
		return nil
	}
	types := q.offer().mediaTypes()
	if q.sub != nil && q.sub.Stream != nil {
		types = append([]string{"text/plain"}, types...) // for the router, not for negotiation
	}
	if routeAccepts(q.r.Header.Get("Accept"), types) {
		return nil
	}
	if q.info.Verb == "list" || q.info.Verb == "watch" {
		types = append(types, streamTypes()...)
	}
	return routeRefusal(q.r, types)
}

// routedPatch looks for the Content-Type among those of patches. Without a body the
// router goes on with no routes left and finds that none of them has what Accept asks for.
func (q *request) routedPatch() error {
	types := q.patchTypes()
	for clause := range strings.SplitSeq(q.r.Header.Get("Content-Type"), ",") {
		if slices.Contains(types, bareType(clause)) {
			return nil
		}
	}
	if q.r.ContentLength > 0 {
		return routeError(http.StatusUnsupportedMediaType, "415: Unsupported Media Type")
	}
	return routeRefusal(q.r, nil)
}

// routeRefusal lists what there is. The router takes a write whose length is not known for
// one without a body, and its missing body for the reason.
func routeRefusal(r *http.Request, types []string) error {
	there := "\n\nAvailable representations: " + strings.Join(types, ", ")
	writes := r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch
	if writes && r.Header.Get("Content-Length") == "" {
		return routeError(http.StatusUnsupportedMediaType, "415: Unsupported Media Type"+there)
	}
	return routeError(http.StatusNotAcceptable, "406: Not Acceptable"+there)
}

func routeError(code int, text string) error {
	return errors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", text, 0, false)
}
