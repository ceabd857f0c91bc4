package rest

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options of an API. Zero values are replaced by the defaults given.
type Options struct {
	// Admission is asked for every write; nil admits all. It may implement
	// admission.MutationInterface, admission.ValidationInterface or both.
	Admission admission.Interface
	// Authorizer decides whether an update may create; nil allows it.
	Authorizer authorizer.Authorizer
	// MaxBodyBytes bounds a request's body; 3 MiB, as in kube-apiserver.
	MaxBodyBytes int64
	// MinWatch is the shortest time after which the server ends a watch that named no
	// timeout; the longest is twice that. 30 minutes, as in kube-apiserver.
	MinWatch time.Duration
	// BookmarkEvery is the pause between bookmarks; one minute.
	BookmarkEvery time.Duration
	// FutureWait is how long a read waits for a resourceVersion that has not come up
	// yet; 3 seconds, as in kube-apiserver.
	FutureWait time.Duration
	// Deprecated is told of each request for a deprecated version that reaches its verb,
	// with the release that serves it no more, if there is one. nil: nobody is.
	Deprecated func(resource schema.GroupVersionResource, subresource, removedIn string)
	// Audited says that requests may come with a place for an event of the audit log in
	// their context (k8s.io/apiserver/pkg/audit).
	Audited bool
	// Untracked leaves metadata.managedFields alone and takes no server-side apply: a
	// switch for benchmarks, to see what the tracking costs.
	Untracked bool
}

// API serves the resources of a registry from a store.
type API struct {
	store *sqlstore.Store
	kinds *kind.Registry
	o     Options

	unchanged *unchanged

	draining context.Context // ended by Drain; ends watches and connections
	drain    context.CancelFunc
}

// New returns an API. It starts nothing.
func New(store *sqlstore.Store, kinds *kind.Registry, o Options) *API {
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 3 << 20
	}
	if o.MinWatch == 0 {
		o.MinWatch = 30 * time.Minute
	}
	if o.BookmarkEvery == 0 {
		o.BookmarkEvery = time.Minute
	}
	if o.FutureWait == 0 {
		o.FutureWait = 3 * time.Second
	}
	a := &API{store: store, kinds: kinds, o: o, unchanged: newUnchanged()}
	a.draining, a.drain = context.WithCancel(context.Background())
	return a
}

// Drain ends all watches cleanly, so that their clients resume elsewhere or later, logs that
// are followed, and connections that were handed on (exec, port-forward). Those that start
// afterwards end at once. Other requests go on.
func (a *API) Drain() { a.drain() }

// Serve answers one resource request: info is the parsed path, who the authenticated
// and authorized caller.
func (a *API) Serve(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo, who user.Info) {
	q, err := a.newRequest(w, r, info, who)
	if err == nil {
		err = q.serve()
	}
	if err != nil {
		WriteError(w, r, err)
	}
}

// serve calls the verb. List and watch look at what the client accepts after they have
// looked at their parameters.
func (q *request) serve() error {
	handle, err := q.handler()
	if err == nil {
		err = q.routed()
	}
	// Upstream's handler of custom resources warns of a version before it looks at the verb.
	if v := q.kind.Version(q.version); v.Deprecated != "" && (err == nil || q.kind.Custom() && err != ErrNoPath) {
		q.deprecated(v)
		defer q.auditDeprecated(v) // so that the event for a watch that begins does not have it yet
	}
	if err != nil {
		return err
	}
	if q.refused != nil && !q.connects() && q.info.Verb != "list" && q.info.Verb != "watch" {
		return q.refused
	}
	return handle(q)
}

// deprecated warns the client, and lets the operator know.
func (q *request) deprecated(v *kind.Version) {
	q.warn.AddWarning("", v.Deprecated)
	if q.api.o.Deprecated == nil {
		return
	}
	subresource := ""
	if q.sub != nil {
		subresource = q.sub.Name
	}
	q.api.o.Deprecated(q.gvr(), subresource, v.RemovedIn)
}
