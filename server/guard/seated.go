package guard

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/plinth-io/plinth/server/fairness"
)

// seated serves a request when the server has a seat for it. Long-running requests other than
// watches need none. A seat is for work: the request's body is read before, and the seat is given back
// when the client does not read the answer.
func (g *Guard) seated(x *Call, serve func() error) error {
	l := g.inflight.of(x.Info)
	if g.waitsForBody(x, l) {
		if err := g.readBody(x); errors.Is(err, errGone) {
			return g.tooMany(x, l, "1")
		} else if err != nil {
			return err
		}
		defer g.bodies.leave(&x.body) // if there is no seat for it
	}
	switch {
	case g.o.Fairness != nil && (l != nil || x.Info.Verb == "watch"):
		return g.seatedFairly(x, l, serve)
	case l == nil:
		return serve()
	case !l.enter(x.User):
		return g.tooMany(x, l, "1")
	}
	seat := &counted{l: l}
	defer seat.Leave()
	return g.work(x, l, seat, serve)
}

// counted is the seat of a request that a limit counts.
type counted struct {
	l    *limit
	left atomic.Bool
}

// Leave implements fairness.Seat.
func (c *counted) Leave() {
	if !c.left.Swap(true) {
		c.l.leave()
	}
}

// seatedFairly leaves it to priority and fairness which request has a seat. The limit, which is nil
// for a watch, counts and does not bound.
func (g *Guard) seatedFairly(x *Call, l *limit, serve func() error) (err error) {
	r := &fairness.Request{HTTP: x.Request(), Header: x.Response().Header(), Info: x.Info, User: x.User}
	if l == nil {
		r.Begun = x.seat.end
	}
	retryAfter := g.o.Fairness.Serve(r, func(r *http.Request, seat fairness.Seat) {
		if l != nil {
			l.running.Add(1)
			defer l.leave()
		}
		x.SetRequest(r)
		err = g.work(x, l, seat, serve)
	})
	if retryAfter != "" {
		return g.tooMany(x, l, retryAfter)
	}
	return err
}

// work serves a request that has a seat.
func (g *Guard) work(x *Call, l *limit, given fairness.Seat, serve func() error) error {
	if !g.bodies.leave(&x.body) {
		return g.tooMany(x, l, "1")
	}
	if bounds(x) {
		x.seat.begin(g, x, given)
		defer x.seat.end()
	}
	return serve()
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
