package guard

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"

	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/fairness"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/server/selectors"
)

// Options of a Guard. All but Audit and Fairness are needed.
type Options struct {
	Authenticator *authn.Authenticator
	Authorizer    authorizer.Authorizer
	Audit         *audit.Log // nil: there is no audit log
	Limits        Limits
	Fairness      *fairness.Controller // nil: Limits.Reads and Limits.Writes bound the requests that run
	Metrics       *metrics.Metrics
	Logger        *slog.Logger
}

// Guard is the http.Handler of all routes. Its methods are safe for concurrent use once all
// routes are there.
type Guard struct {
	o      Options
	routes *echo.Echo
	kinds  *kind.Registry   // names what metrics may be labelled with
	rights map[string]Right // by paths of routes

	impersonation http.Handler // see newImpersonation

	inflight inflight
	running  running
	calls    calls
	panics   logging.Seldom

	connections *connections
	bodies      *room // of bodies that come, or that wait for a seat
	answers     *room // of answers whose clients read slowly
}

// New returns a Guard without routes.
func New(kinds *kind.Registry, o Options) *Guard {
	o.Limits = o.Limits.withDefaults()
	slow := bound{o.Limits.SlowCalls, o.Limits.SlowBytes}
	g := &Guard{
		o: o, routes: echo.New(), kinds: kinds, rights: map[string]Right{},
		impersonation: newImpersonation(o.Authorizer),

		inflight: newInflight(o.Limits),
		running:  running{idle: make(chan struct{})},
		calls:    calls{running: map[*Call]struct{}{}},

		connections: newConnections(o.Limits.Connections),
		bodies:      newRoom(slow, waitedForBody),
		answers:     newRoom(slow, waitedForReader),
	}
	g.routes.Use(g.around)
	for _, l := range []*limit{&g.inflight.reads, &g.inflight.writes} {
		o.Metrics.Inflight(l.kind, l.running.Load)
	}
	o.Metrics.Connections(g.connections.figures)
	o.Metrics.Slow("body", g.bodies.figures)
	o.Metrics.Slow("reader", g.answers.figures)
	return g
}

// Route has handler answer a path, for all methods: a handler refuses the methods that it
// does not have. Paths without a route get 404.
func (g *Guard) Route(path string, handler func(*Call) error) {
	// With no handler for a method of its own, a path's "not found" handler gets all
	// methods; echo's Any has only some of them.
	g.routes.RouteNotFound(path, func(c echo.Context) error { return handler(c.(*Call)) })
}

// Paths are those that Route was called with, sorted.
func (g *Guard) Paths() []string {
	var paths []string
	for _, route := range g.routes.Routes() {
		paths = append(paths, route.Path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// ServeHTTP matches paths as they are decoded, as upstream's does: echo would take the
// encoded path where the two differ.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.URL.RawPath = ""
	growStack(r.Method)
	g.routes.ServeHTTP(w, r)
}

// notCached is on every answer but those of handlers that say otherwise (upstream:
// endpoints/filters/cachecontrol.go). It is shared to save an allocation.
var notCached = []string{"no-cache, private"}

// closes has net/http close a connection after the answer. Unknown clients get no connection of
// HTTP/2 for more than one request, as in upstream: they could use it for floods.
var closes = []string{"close"}

var paths = &apirequest.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// around wraps every route, and paths without a route as well, so that a caller without permission does not learn which
// paths exist.
func (g *Guard) around(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		x := &Call{Context: c, right: g.rights[c.Path()]}
		h := c.Response().Header()
		audit.Identify(h, c.Request())
		h["Cache-Control"] = notCached
		if g.o.Limits.sendsAway(c.Request()) {
			h["Connection"] = closes
		}
		if !g.running.enter() {
			h["Retry-After"] = []string{"1"}
			h["X-Content-Type-Options"] = []string{"nosniff"}
			response.WriteError(c.Response(), c.Request(), errStopping)
			return nil
		}
		defer g.running.leave()
		x.follow()
		g.calls.add(x)
		defer g.calls.remove(x)
		defer g.finish(x, time.Now())
		if err := g.admit(x, next); err != nil {
			x.fail(err)
		}
		return nil
	}
}

// admit goes through path, deadline and caller, in this order; audited and admitKnown
// go on.
func (g *Guard) admit(x *Call, next echo.HandlerFunc) (err error) {
	r := x.Request()
	if x.Info, err = paths.NewRequestInfo(selectors.Bounded(r)); err != nil {
		x.Response().Header().Del("Cache-Control")
		return errInternal(r, fmt.Errorf("failed to create RequestInfo: %w", err))
	}
	ctx, cancel, err := x.limitTime(g.beginAudit(x), g.o.Limits.Timeout)
	if ctx != r.Context() {
		x.SetRequest(r.WithContext(ctx))
	}
	if err != nil {
		return g.refuse(x, err)
	}
	defer cancel()
	who, err := g.o.Authenticator.User(recordWarnings(x))
	if r.ProtoMajor == 2 && (err != nil || who.GetName() == user.Anonymous) && utilfeature.DefaultFeatureGate.Enabled(features.UnauthenticatedHTTP2DOSMitigation) {
		x.Response().Header()["Connection"] = closes
	}
	if err != nil || authn.IsServer(who) && x.right != RightOfServers {
		return g.refuse(x, apierrors.NewUnauthorized("Unauthorized"))
	}
	x.is(who)
	return g.audited(x, next)
}

// admitKnown goes on when the caller is known: impersonation, load, permission, handler.
func (g *Guard) admitKnown(x *Call, next echo.HandlerFunc) error {
	if !g.impersonate(x) {
		return nil
	}
	if authn.IsServer(x.User) {
		return next(x) // it says little and seldom, and has nobody else to ask for the right to
	}
	return g.seated(x, func() error { return g.permitted(x, next) })
}

// permitted goes on when the request has a seat: permission, handler.
func (g *Guard) permitted(x *Call, next echo.HandlerFunc) error {
	if err := g.authorize(x); err != nil {
		x.Response().Header().Set("X-Content-Type-Options", "nosniff")
		return err
	}
	if x.Info.Verb == "watch" {
		return g.countWatch(x, next)
	}
	if err := x.Request().Context().Err(); err != nil {
		return err
	}
	return next(x)
}

// recordWarnings lets the authenticator warn about a token, such as one of a kind that is
// not to be used any more.
func recordWarnings(x *Call) *http.Request {
	r := x.Request()
	if r.Header["Authorization"] == nil {
		return r
	}
	x.SetRequest(r.WithContext(warning.WithWarningRecorder(r.Context(), response.NewWarnings(x.Response().Header()))))
	return x.Request()
}

// authorize asks whether the caller may do what is asked.
func (g *Guard) authorize(x *Call) error {
	ctx, what := x.Request().Context(), x.attributes()
	begun := time.Now()
	decision, reason, err := g.o.Authorizer.Authorize(ctx, what)
	g.o.Metrics.Authorized(authz.Result(decision, err), time.Since(begun))
	if g.o.Audit != nil {
		authz.Annotate(ctx, decision, reason, err)
	}
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return errInternal(x.Request(), err)
	}
	return responsewriters.ForbiddenStatusError(what, reason)
}
