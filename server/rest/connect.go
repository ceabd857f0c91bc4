package rest

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/server/upgrade"
)

// connect hands a request on to the subresource's own handler, once admission has agreed. A
// connection that the client has upgraded ends at the latest when the server drains.
func (q *request) connect() error {
	if q.values().Has("dryRun") {
		return apierrors.NewBadRequest("dryRun is not supported")
	}
	options, deep, key := q.sub.Connect.NewConnectOptions()
	if err := parameters(q, options, deep, key); err != nil {
		return err
	}
	ctx := q.rulesContext()
	if err := (admitter{q}).connect(ctx, options); err != nil {
		return err
	}
	w := q.w
	if httpstream.IsUpgradeRequest(q.r) {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(q.api.draining, end)()
		w = upgrade.Until(ctx, w)
	}
	handler, err := q.sub.Connect.Connect(ctx, q.name, options, responder{q})
	if err != nil {
		return response.FromRegistry(err)
	}
	handler.ServeHTTP(w, q.r.WithContext(ctx))
	return nil
}

// parameters decodes the query into options. With deep the rest of the path, after the subresource, is also a
// parameter, named key.
func parameters(q *request, options runtime.Object, deep bool, key string) error {
	query := q.r.URL.Query()
	if deep {
		query[key] = []string{q.subpath()}
	}
	if err := q.sub.Parameters.DecodeParameters(query, q.gvk().GroupVersion(), options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// subpath is the path behind the subresource, with its first slash. It ends with a slash if the
// whole path does.
func (c *call) subpath() string {
	p := strings.Join(c.info.Parts[3:], "/")
	if p != "" && !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if strings.HasSuffix(c.info.Path, "/") && !strings.HasSuffix(p, "/") {
		p += "/"
	}
	return p
}

// responder answers a request if the connection fails.
type responder struct{ q *request }

var _ apirest.Responder = responder{}

func (r responder) Object(code int, obj runtime.Object) {
	if err := r.q.respondHub(code, r.q.codec(), obj); err != nil {
		r.Error(err)
	}
}

func (r responder) Error(err error) {
	r.q.api.errors.WriteError(r.q.w, r.q.r, response.FromRegistry(err))
}
