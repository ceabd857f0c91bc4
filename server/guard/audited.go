package guard

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/plinth-io/plinth/server/audit"
)

// beginAudit returns the request's context with the place where its audit event is assembled.
func (g *Guard) beginAudit(x *Call) context.Context {
	ctx := x.Request().Context()
	if g.o.Audit == nil {
		return ctx
	}
	return audit.Begin(ctx, x.Info, x.Response().Header())
}

// refuse answers a request with err before its caller is known, and logs it if there is an audit
// log.
func (g *Guard) refuse(x *Call, err error) error {
	if g.o.Audit == nil {
		return err
	}
	w := x.Response().Writer
	defer func() { x.Response().Writer = w }()
	g.o.Audit.Refuse(w, x.Request(), x.attributes(), func(w http.ResponseWriter) {
		x.Response().Writer = w
		x.fail(err)
	})
	return nil
}

// audited serves a call whose caller is known, and logs it if there is an audit log.
func (g *Guard) audited(x *Call, next echo.HandlerFunc) error {
	if g.o.Audit == nil {
		return g.admitKnown(x, next)
	}
	w := x.Response().Writer
	defer func() { x.Response().Writer = w }()
	err := g.o.Audit.Serve(w, x.Request(), x.attributes(), func(w http.ResponseWriter) {
		x.Response().Writer = w
		if err := g.admitKnown(x, next); err != nil {
			x.fail(err)
		}
	})
	if err != nil {
		return errInternal(x.Request(), err)
	}
	return nil
}
