package rest

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/upgrade"
)

// connect hands a request on to where the subresource leads, once admission has agreed. A
// connection that the client has upgraded ends at the latest when the server drains.
func (q *request) connect() error {
	if q.values().Has("dryRun") {
		return errors.NewBadRequest("dryRun is not supported")
	}
	options, deep, key := q.sub.Connect.NewConnectOptions()
	if err := q.parameters(options, deep, key); err != nil {
		return err
	}
	ctx := q.rulesContext()
	if err := q.admitConnect(ctx, options); err != nil {
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
		return plainly(err)
	}
	handler.ServeHTTP(w, q.r.WithContext(ctx))
	return nil
}

// parameters reads the query, and with deep what the path has behind the subresource, as
// key, into options.
func (q *request) parameters(options runtime.Object, deep bool, key string) error {
	query := q.r.URL.Query()
	if deep {
		query[key] = []string{q.subpath()}
	}
	if err := q.sub.Parameters.DecodeParameters(query, q.gvk().GroupVersion(), options); err != nil {
		return errors.NewBadRequest(err.Error())
	}
	return nil
}

// subpath is what follows the subresource in the path, from its slash on. It ends with a
// slash if the path does.
func (q *request) subpath() string {
	p := strings.Join(q.info.Parts[3:], "/")
	if p != "" && !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if strings.HasSuffix(q.info.Path, "/") && !strings.HasSuffix(p, "/") {
		p += "/"
	}
	return p
}

func (q *request) admitConnect(ctx context.Context, options runtime.Object) error {
	if !q.admits(admission.Connect) {
		return nil
	}
	for _, ask := range []func(context.Context, admission.Attributes) error{q.mutate, q.validate} {
		if err := ask(ctx, q.attributes(admission.Connect, options, nil, nil, q.name, false)); err != nil {
			return err
		}
	}
	return nil
}

// connectMethods are those of a subresource that is connected to; deep says that the path
// goes on behind it.
func (q *request) connectMethods(deep bool) methods {
	if _, ok, _ := q.sub.Connect.NewConnectOptions(); deep && !ok {
		return nil
	}
	all := methods{}
	for _, method := range q.sub.Connect.ConnectMethods() {
		all[method] = "connect"
	}
	return all
}

// connects tells whether the request is one to be handed on.
func (q *request) connects() bool { return q.sub != nil && q.sub.Connect != nil }

// responder is how a connection that does not come about is answered.
type responder struct{ q *request }

var _ rest.Responder = responder{}

func (r responder) Object(code int, obj runtime.Object) {
	if err := r.q.respondHub(code, r.q.codec(), obj); err != nil {
		r.Error(err)
	}
}

func (r responder) Error(err error) { WriteError(r.q.w, r.q.r, plainly(err)) }
