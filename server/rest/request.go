package rest

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/plinth-io/plinth/server/kind"
)

// request is one call of one verb: everything a handler needs, explicitly.
type request struct {
	api  *API
	w    http.ResponseWriter
	r    *http.Request
	info *apirequest.RequestInfo
	who  user.Info

	kind      *kind.Kind
	version   string
	sub       *kind.Subresource // nil for the object itself
	namespace string            // empty for cluster-scoped resources and all namespaces
	name      string
	applies   bool // a server-side apply

	query   url.Values // parsed at the first use, see values
	out     output     // negotiated response encoding
	refused error      // the client accepts nothing that is offered: out is empty
	warn    *warnings
}

// newRequest finds the Kind of a path and negotiates the encoding of the response.
func (a *API) newRequest(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo, who user.Info) (*request, error) {
	q := &request{api: a, w: w, r: r, info: info, who: who, name: info.Name, version: info.APIVersion, warn: newWarnings(w)}
	kinds := a.kinds.Set()
	if q.kind = kinds.Lookup(info.APIGroup, info.APIVersion, info.Resource); q.kind == nil {
		if !kinds.HasGroup(info.APIGroup) {
			return nil, ErrNoPath
		}
		return nil, ErrNotFound()
	}
	if info.Subresource != "" {
		if q.sub = q.kind.Subresources[info.Subresource]; q.sub == nil && !q.kind.Custom() {
			return nil, ErrNotFound()
		}
	}
	if q.kind.Namespaced {
		q.namespace = info.Namespace
	}
	q.negotiateOutput()
	return q, nil
}

// values returns the query parameters.
func (q *request) values() url.Values {
	if q.query == nil {
		if q.r.URL.RawQuery == "" {
			return nil
		}
		q.query = q.r.URL.Query()
	}
	return q.query
}

func (q *request) groupResource() schema.GroupResource { return q.kind.GroupResource() }

func (q *request) gvr() schema.GroupVersionResource {
	return q.groupResource().WithVersion(q.version)
}

// gvk of the object, or of the subresource's body where that is of another kind.
func (q *request) gvk() schema.GroupVersionKind {
	if q.sub != nil && !q.sub.GVK.Empty() {
		return q.sub.GVK
	}
	return q.kind.GVK(q.version)
}

func (q *request) key() string { return q.kind.Key(q.namespace, q.name) }

// rulesContext carries what upstream's rules read from a context: the namespace, the
// caller, the parsed path and where warnings go.
func (q *request) rulesContext() context.Context {
	ctx := apirequest.WithNamespace(q.r.Context(), q.namespace)
	ctx = apirequest.WithRequestInfo(ctx, q.info)
	ctx = apirequest.WithUser(ctx, q.who)
	return warning.WithWarningRecorder(ctx, q.warn)
}

// body reads the request's body, up to the limit.
func (q *request) body() ([]byte, error) {
	limit := q.api.o.MaxBodyBytes
	if n := q.r.ContentLength; n > limit {
		// Read as far as upstream does, so that the connection goes on where it does.
		_, _ = io.CopyN(io.Discard, q.r.Body, limit+1)
		return nil, tooLargeBody(limit)
	} else if n > 0 {
		body := make([]byte, n)
		_, err := io.ReadFull(q.r.Body, body)
		return body, bodyError(err)
	} else if n == 0 {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(q.r.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		return nil, tooLargeBody(limit)
	}
	return body, bodyError(err)
}

func bodyError(err error) error {
	if err == nil {
		return nil
	}
	return errors.NewBadRequest("reading the request's body: " + err.Error())
}
