package rest

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options of an API. Zero values are replaced by the defaults given.
type Options struct {
	// Admission is asked for every write; nil admits all. It may implement
	// admission.MutationInterface, admission.ValidationInterface or both.
	Admission apiadmission.Interface
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
	// Deprecated is called for each request for a deprecated version that reaches its verb.
	// removedIn is the release that no longer serves the version, if one is known. It may be nil.
	Deprecated func(resource schema.GroupVersionResource, subresource, removedIn string)
	// Sent returns a function for a resource, which is called with the size of each object that a watch sends. It may
	// be nil.
	Sent func(resource schema.GroupVersionResource) func(bytes int)
	// CommitDelay bounds how long an update waits for other writes to share its transaction. Only updates for which
	// kind.Hooks.MayWait allows it wait. 0: none waits.
	CommitDelay time.Duration
	// CBOR says that requests and answers may be in CBOR, as upstream's feature gate
	// CBORServingAndStorage does.
	CBOR bool
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

	mediaTypes []string       // of objects, as errors list them
	errors     response.Offer // of the verbs

	unchanged *unchanged

	draining context.Context // ended by Drain; ends watches and connections
	drain    context.CancelFunc
	watches  watches
}

// New returns an API. It starts nothing.
func New(store *sqlstore.Store, kinds *kind.Registry, o Options) *API {
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = response.MaxBody
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
	a.mediaTypes = response.ResourceObjects.WithCBOR(o.CBOR).MediaTypes() // also where there is no protobuf
	a.errors = response.StatusObjects.WithCBOR(o.CBOR)
	a.draining, a.drain = context.WithCancel(context.Background())
	return a
}

// Drain ends watches, logs that are followed, and connections that were handed on (exec,
// port-forward). Watches end cleanly, so that their clients resume elsewhere or later. What
// starts afterwards ends at once. Other requests go on.
func (a *API) Drain() {
	a.drain()
	a.watches.wake()
}

// Serve answers one resource request. info is the parsed path, who is the authenticated and
// authorized caller.
func (a *API) Serve(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo, who user.Info) {
	q, err := a.newRequest(w, r, info, who)
	if err == nil {
		err = q.serve()
	}
	switch {
	case err == nil:
	case q != nil && q.routed:
		a.errors.WriteError(w, r, err)
	default: // upstream's router knows no CBOR
		response.WriteError(w, r, err)
	}
}

// serve calls the verb. List and watch check the Accept header themselves, after their
// parameters.
func (q *request) serve() error {
	route := routing{q}
	handle, err := route.handler()
	q.routed = handle != nil // a verb is found, though the names may be wrong
	if err == nil {
		err = route.refusal()
		q.routed = err == nil
	}
	// Upstream's handler of custom resources warns of a version before it looks at the verb.
	if v := q.kind.Version(q.version); v.Deprecated != "" && (err == nil || q.kind.Custom != nil && err != response.ErrNoPath) {
		q.deprecated(v)
		defer q.auditDeprecated(v) // deferred: as upstream, a watch's first audit event lacks it
	}
	if err != nil {
		return err
	}
	if q.refused != nil && !q.connects() && q.info.Verb != "list" && q.info.Verb != "watch" {
		return q.refused
	}
	return handle(q)
}

// deprecated warns the client of a deprecated version, and lets the operator know.
func (q *request) deprecated(v *kind.Version) {
	q.warn.AddWarning("", v.Deprecated)
	if q.api.o.Deprecated == nil {
		return
	}
	q.api.o.Deprecated(q.gvr(), q.subresource(), v.RemovedIn)
}
