package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/plinth-io/plinth/server/auth"
	"github.com/plinth-io/plinth/server/rest"
)

// call is one request on its way through the server: what the guard found out about it.
type call struct {
	echo.Context
	info *apirequest.RequestInfo
	who  user.Info

	watching bool // counted by watch, not by finish

	in   in
	out  out
	conn net.Conn // nil in process

	mu   sync.Mutex // guards over and cut
	over bool       // the writer is not this call's any more
	cut  bool       // its client was cut off
}

// notCached is on every answer but those of handlers that say otherwise (upstream:
// endpoints/filters/cachecontrol.go). It is shared to save an allocation.
var notCached = []string{"no-cache, private"}

var paths = &apirequest.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// guard stands around every route, also around those that do not exist: a caller who
// may not ask is not told what is there.
func (s *Server) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		x := &call{Context: c}
		h := c.Response().Header()
		identify(h, c.Request())
		h["Cache-Control"] = notCached
		if !s.running.enter() {
			h["Retry-After"] = []string{"1"}
			h["X-Content-Type-Options"] = []string{"nosniff"}
			rest.WriteError(c.Response(), c.Request(), errStopping)
			return nil
		}
		defer s.running.leave()
		s.follow(x)
		defer s.calls.remove(x)
		defer s.finish(x, time.Now())
		if err := s.admit(x, next); err != nil {
			s.fail(x, err)
		}
		return nil
	}
}

// admit is the order of things: path, time, caller, load, permission, handler.
func (s *Server) admit(x *call, next echo.HandlerFunc) (err error) {
	r := x.Request()
	if x.info, err = paths.NewRequestInfo(r); err != nil {
		x.Response().Header().Del("Cache-Control")
		return errInternal(r, fmt.Errorf("failed to create RequestInfo: %w", err))
	}
	s.beginAudit(x)
	cancel, err := s.limitTime(x)
	if err != nil {
		return s.refuse(x, err)
	}
	defer cancel()
	if x.who, err = s.authn.User(s.recordWarnings(x)); err != nil {
		return s.refuse(x, apierrors.NewUnauthorized("Unauthorized"))
	}
	return s.logged(x, next)
}

// admitKnown is the order of things from where it is known who asks.
func (s *Server) admitKnown(x *call, next echo.HandlerFunc) (err error) {
	r := x.Request()
	if x.who, err = auth.Impersonated(r, x.who, s.authz); err != nil {
		if errors.Is(err, auth.ErrImpersonation) {
			return errInternal(r, err)
		}
		return err
	}
	if l := s.limits.of(x.info); l != nil {
		if !l.enter(x.who) {
			s.metrics.Rejected(l.kind)
			x.Response().Header().Set("Retry-After", "1")
			return errTooMany
		}
		defer l.leave()
	}
	if err := s.authorize(x); err != nil {
		x.Response().Header().Set("X-Content-Type-Options", "nosniff")
		return err
	}
	if x.info.Verb == "watch" {
		return s.watch(x, next)
	}
	if err := r.Context().Err(); err != nil {
		return err
	}
	return next(x)
}

// recordWarnings is there for what is found about a token: that there is a better kind.
func (s *Server) recordWarnings(x *call) *http.Request {
	r := x.Request()
	if r.Header["Authorization"] == nil {
		return r
	}
	x.SetRequest(r.WithContext(warning.WithWarningRecorder(r.Context(), rest.NewWarnings(x.Response()))))
	return x.Request()
}

// limitTime ends the request's context after the time that it may take, and the reading
// of its body and the writing of its answer too: a client that neither sends nor reads
// would hold its place for ever. Long-running ones end otherwise.
func (s *Server) limitTime(x *call) (context.CancelFunc, error) {
	if longRunning(x.info) {
		return func() {}, nil
	}
	r := x.Request()
	timeout := s.config.RequestTimeout
	if strings.Contains(r.URL.RawQuery, "timeout=") {
		asked, err := askedTimeout(r)
		if err != nil {
			return nil, err
		}
		if asked > 0 {
			timeout = min(timeout, asked)
		}
	}
	deadline := time.Now().Add(timeout)
	x.in.until.Store(deadline.UnixMilli())
	_ = x.out.SetWriteDeadline(deadline.Add(answerGrace))
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	x.SetRequest(r.WithContext(ctx))
	return cancel, nil
}

// askedTimeout is upstream's parameter timeout (endpoints/filters/request_deadline.go).
func askedTimeout(r *http.Request) (time.Duration, error) {
	value := r.URL.Query().Get("timeout")
	if value == "" {
		return 0, nil
	}
	timeout, err := time.ParseDuration(value)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
	}
	return timeout, nil
}

// watch counts a watch while it is open.
func (s *Server) watch(x *call, next echo.HandlerFunc) error {
	x.watching = true
	series := s.metrics.Series(s.labels(x))
	series.Began()
	defer func() { series.Ended(x.Response().Status) }()
	if err := next(x); err != nil {
		s.fail(x, err)
	}
	return nil
}

// fail is the one place where an error becomes a response.
func (s *Server) fail(x *call, err error) {
	if _, ok := err.(*echo.HTTPError); ok {
		err = rest.ErrNoPath
	}
	rest.WriteError(x.Response(), x.Request(), err)
}

// errInternal is upstream's answer to a request that it could not make sense of before
// anything else (endpoints/handlers/responsewriters/errors.go).
func errInternal(r *http.Request, err error) error {
	text := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").
		Replace(fmt.Sprintf("Internal Server Error: %q: %v", r.RequestURI, err))
	return &rest.TextError{Code: http.StatusInternalServerError, Text: text}
}

// finish counts the request, and survives a handler that panicked.
func (s *Server) finish(x *call, begun time.Time) {
	reason, half := recover(), x.Response().Committed
	if reason != nil && reason != http.ErrAbortHandler {
		s.panicked(x, reason)
	}
	if !x.watching {
		s.metrics.Series(s.labels(x)).Done(x.Response().Status, time.Since(begun))
	}
	if reason != nil && half {
		// Half an answer must not look like a whole one: net/http breaks the stream off.
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) panicked(x *call, reason any) {
	s.metrics.Panics.Inc()
	s.config.Logf("panic serving %s %s: %v\n%s", x.Request().Method, x.Request().URL.Path, reason, debug.Stack())
	if x.Response().Committed {
		return
	}
	if x.info != nil && x.info.IsResourceRequest {
		s.fail(x, apierrors.NewGenericServerResponse(http.StatusInternalServerError, "", schema.GroupResource{}, "", "", 0, false))
		return
	}
	s.fail(x, errPanic)
}

// errPanic is in upstream's words (server/filters/wrap.go).
var errPanic = &rest.TextError{
	Code: http.StatusInternalServerError,
	Text: "This request caused apiserver to panic. Look in the logs for details.",
}
