package guard

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/response"
)

// countWatch counts a watch while it is open.
func (g *Guard) countWatch(x *Call, next echo.HandlerFunc) error {
	x.watching = true
	series := g.o.Metrics.Series(g.labels(x))
	series.Began()
	defer func() { series.Ended(x.Response().Status) }()
	if err := next(x); err != nil {
		x.fail(err)
	}
	return nil
}

// finish counts the request, and survives a handler that panicked.
func (g *Guard) finish(x *Call, begun time.Time) {
	reason, half := recover(), x.Response().Committed
	switch reason := reason.(type) {
	case nil:
	case response.Broken:
		g.o.Logger.Warn("broke off a list that was being sent", "path", x.Request().URL.Path, "err", reason.Err)
	default:
		if reason != http.ErrAbortHandler {
			g.panicked(x, reason)
		}
	}
	if !x.watching {
		g.o.Metrics.Series(g.labels(x)).Done(x.Response().Status, time.Since(begun))
	}
	if reason != nil && half {
		// Half an answer must not look like a whole one: net/http breaks the stream off.
		panic(http.ErrAbortHandler)
	}
}

func (g *Guard) panicked(x *Call, reason any) {
	g.o.Metrics.Panics.Inc()
	g.panics.Log(g.o.Logger, slog.LevelError, "panic while serving a request", "method", x.Request().Method, "path", x.Request().URL.Path, "panic", reason, "stack", string(debug.Stack()))
	if x.Response().Committed {
		return
	}
	if x.Info != nil && x.Info.IsResourceRequest {
		x.fail(apierrors.NewGenericServerResponse(http.StatusInternalServerError, "", schema.GroupResource{}, "", "", 0, false))
		return
	}
	x.fail(errPanic)
}
