package guard

import (
	"net/http"

	"github.com/plinth-io/plinth/server/fairness"
)

// seated serves a request when the server has a seat for it. Long-running requests other than
// watches need none.
func (g *Guard) seated(x *Call, serve func() error) error {
	l := g.inflight.of(x.Info)
	switch {
	case g.o.Fairness != nil && (l != nil || x.Info.Verb == "watch"):
		return g.seatedFairly(x, l, serve)
	case l == nil:
		return serve()
	case !l.enter(x.User):
		return g.tooMany(x, l, "1")
	}
	defer l.leave()
	return serve()
}

// seatedFairly leaves it to priority and fairness which request has a seat. The limit, which is nil
// for a watch, counts and does not bound.
func (g *Guard) seatedFairly(x *Call, l *limit, serve func() error) (err error) {
	r := &fairness.Request{HTTP: x.Request(), Header: x.Response().Header(), Info: x.Info, User: x.User}
	retryAfter := g.o.Fairness.Serve(r, func(r *http.Request) {
		if l != nil {
			l.running.Add(1)
			defer l.leave()
		}
		x.SetRequest(r)
		err = serve()
	})
	if retryAfter != "" {
		return g.tooMany(x, l, retryAfter)
	}
	return err
}

// tooMany turns a request away; l is nil for a watch.
func (g *Guard) tooMany(x *Call, l *limit, retryAfter string) error {
	kind := g.inflight.reads.kind
	if l != nil {
		kind = l.kind
	}
	g.o.Metrics.Rejected(kind)
	x.Response().Header().Set("Retry-After", retryAfter)
	return errTooMany
}
