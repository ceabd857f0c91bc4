package guard

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Call is one request on its way through the server, with what the Guard found out about it.
type Call struct {
	echo.Context
	Info *apirequest.RequestInfo
	User user.Info // set by is

	right    Right                        // of the route; empty: its path
	what     *authorizer.AttributesRecord // nil until somebody asks
	watching bool                         // counted by countWatch, not by finish

	in     in
	out    out
	conn   *connection // nil in process
	cancel context.CancelFunc

	body   place // of its body, until it has a seat
	seat   seat
	answer place // of its answer, when it has given its seat back

	mu   sync.Mutex // guards over and cut
	over bool       // the writer is not this call's any more
	cut  bool       // its client was cut off
}

// HTTP makes a route's handler of one of the standard library's kind.
func HTTP(h http.Handler) func(*Call) error {
	return func(x *Call) error {
		h.ServeHTTP(x.Response(), x.Request())
		return nil
	}
}

// follow makes the call's reads and writes visible.
func (x *Call) follow() {
	w, r := x.Response(), x.Request()
	x.out.ResponseWriter = w.Writer
	w.Writer = &x.out
	if r.ContentLength != 0 {
		x.in.ReadCloser = r.Body
		r.Body = &x.in
	}
	x.conn, _ = r.Context().Value(connKey{}).(*connection)
	x.conn.begin()
}

// answerGrace is how long after a request's deadline its answer may still be on its way.
const answerGrace = 2 * time.Second

// is says who sends the request.
func (x *Call) is(who user.Info) { x.User, x.what = who, nil }

// limitTime ends the request's context at its deadline, and with it the reading of the body and the writing of the
// answer: otherwise a client that neither sends nor reads would hold its place for ever. Long-running requests have no
// deadline.
func (x *Call) limitTime(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, error) {
	if LongRunning(x.Info) {
		return ctx, func() {}, nil
	}
	r := x.Request()
	if strings.Contains(r.URL.RawQuery, "timeout=") {
		asked, err := askedTimeout(r)
		if err != nil {
			return ctx, nil, err
		}
		if asked > 0 {
			timeout = min(timeout, asked)
		}
	}
	deadline := time.Now().Add(timeout)
	x.in.until.Store(deadline.UnixMilli())
	_ = x.out.SetWriteDeadline(deadline.Add(answerGrace))
	ctx, x.cancel = context.WithDeadline(ctx, deadline)
	return ctx, x.cancel, nil
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
