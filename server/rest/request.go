package rest

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
)

// request is one call of one verb on one target: everything that a verb needs, explicitly.
type request struct {
	*call
	target
	fill kind.Fill // completes the entries of a list, if the store does not
}

// newRequest finds the Kind of a path and negotiates the encoding of the response.
func (a *API) newRequest(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo, who user.Info) (*request, error) {
	kinds := a.kinds.Set()
	k := kinds.Lookup(info.APIGroup, info.APIVersion, info.Resource)
	if k == nil {
		if err := a.unserved(info); err != nil {
			return nil, err
		}
		if !kinds.HasGroup(info.APIGroup) {
			return nil, response.ErrNoPath
		}
		return nil, response.NotFound()
	}
	both := &struct { // one allocation for the two
		call    call
		request request
	}{call: call{
		api: a, w: w, r: r, ctx: r.Context(), info: info, who: who,
		admission: a.o.Admission, warn: response.NewWarnings(w.Header()),
	}}
	q := &both.request
	q.call = &both.call
	q.target = target{kind: k, version: info.APIVersion, name: info.Name}
	if info.Subresource != "" {
		if q.sub = k.Subresources[info.Subresource]; q.sub == nil && k.Custom == nil {
			return nil, response.NotFound()
		}
	}
	if k.Namespaced {
		q.namespace = info.Namespace
	}
	q.negotiate(q.offer())
	q.noteOrigin()
	return q, nil
}

// offer says how answers about the target can be encoded.
func (q *request) offer() response.Offer {
	o := response.ResourceObjects
	switch {
	case !q.kind.Protobuf:
		o = response.CustomObjects
	case q.kind.Virtual != nil, q.sub != nil && q.sub.NoTable:
		o = response.UntabledObjects
	}
	return o.WithCBOR(q.api.o.CBOR)
}

// at returns a request of the same call for another object of the same resource.
func (q *request) at(namespace, name string) *request {
	one := &request{call: q.call, target: q.target}
	one.namespace, one.name = namespace, name
	return one
}

// rulesContext carries what upstream's rules read from a context: the namespace, the
// caller, the parsed path and where warnings go.
func (q *request) rulesContext() context.Context {
	ctx := apirequest.WithNamespace(q.ctx, q.namespace)
	ctx = apirequest.WithRequestInfo(ctx, q.info)
	ctx = apirequest.WithUser(ctx, q.who)
	return warning.WithWarningRecorder(ctx, q.warn)
}
