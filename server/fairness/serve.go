package fairness

import (
	"context"
	"net/http"
	"strconv"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// Request is a request that asks to be let in.
type Request struct {
	HTTP   *http.Request
	Header http.Header // of the answer
	Info   *apirequest.RequestInfo
	User   user.Info
}

// Serve calls next when there is a seat for the request, and returns when next has returned. If the
// request is turned away, next is not called, and Serve returns the number of seconds after which
// the client may come back; otherwise the number is empty. For long-running requests other than
// watches, which have no seats, Serve must not be called.
//
// A watch has its seat until its handler calls flowcontrol.WatchInitialized with the context of the
// request that next gets.
func (c *Controller) Serve(r *Request, next func(*http.Request)) (retryAfter string) {
	q := questionOf(r.Info)
	if d := c.memory.recall(q, r.User); d != nil {
		t := &ticket{decision: d, who: r.User, info: r.Info, width: c.widthOf(r, d.names), begun: time.Now()}
		if d.level.enter(t) {
			c.serveDirectly(r, t, next)
			return ""
		}
	}
	w := &waiting{c: c, r: r, question: q, came: time.Now(), next: next}
	if r.Info.Verb == "watch" {
		return w.serveWatch()
	}
	return w.serve()
}

// mark names the priority level and the FlowSchema to the client.
func (d *decision) mark(h http.Header) {
	h[levelHeader], h[schemaHeader] = d.headers[0], d.headers[1]
}

var (
	levelHeader  = http.CanonicalHeaderKey(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
	schemaHeader = http.CanonicalHeaderKey(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
)

// serveDirectly serves a request that passes by the queues.
func (c *Controller) serveDirectly(r *Request, t *ticket, next func(*http.Request)) {
	t.decision.mark(r.Header)
	m := c.metrics.of(t.decision.names)
	m.let(t.decision.exempt, t.width.MaxSeats(), 0)
	if r.Info.Verb != "watch" {
		defer t.leave(m, false)
		next(r.HTTP)
		return
	}
	signal := newSignal(func() { t.leave(m, true) })
	defer signal.Signal() // a watch that fails may never have begun
	c.watch(r, signal, next)
}

func (t *ticket) leave(m *counts, watch bool) {
	t.decision.level.leave(t)
	m.done(watch, t.width.MaxSeats(), time.Since(t.begun))
}

// watch serves a watch that was let in, and counts it for the width of writes.
func (c *Controller) watch(r *Request, signal flowcontrol.InitializationSignal, next func(*http.Request)) {
	if forget := c.upstream.RegisterWatch(r.HTTP.WithContext(apirequest.WithRequestInfo(r.HTTP.Context(), r.Info))); forget != nil {
		defer forget()
	}
	// A client that does not read its initial events keeps its seat no longer than a request may.
	late := time.AfterFunc(c.o.Timeout, signal.Signal)
	defer late.Stop()
	next(r.HTTP.WithContext(flowcontrol.WithInitializationSignal(r.HTTP.Context(), signal)))
}

// waiting is a request on its way through upstream's queues.
type waiting struct {
	c        *Controller
	r        *Request
	question question
	came     time.Time
	next     func(*http.Request)

	decision *decision // set by upstream's first call back
	seats    int
	begun    time.Time // zero: it was not let in
}

// handle has upstream call run when there is a seat.
func (w *waiting) handle(ctx context.Context, run func()) {
	ctx = context.WithValue(ctx, waitingKey{}, w)
	ctx = apirequest.WithUser(apirequest.WithRequestInfo(ctx, w.r.Info), w.r.User)
	w.c.upstream.Handle(ctx, flowcontrol.RequestDigest{RequestInfo: w.r.Info, User: w.r.User},
		func(schema *flowcontrolv1.FlowSchema, level *flowcontrolv1.PriorityLevelConfiguration, distinguisher string) {
			w.decision = w.c.memory.decided(schema, level, distinguisher, w.r.User)
		},
		func() fcrequest.WorkEstimate {
			width := w.c.widthOf(w.r, w.decision.names)
			w.seats = width.MaxSeats()
			return width
		},
		func(bool) {}, run)
}

// let marks the answer of a request that has a seat.
func (w *waiting) let() {
	w.begun = time.Now()
	w.decision.mark(w.r.Header)
	w.c.memory.remember(w.question, w.r.User, w.decision)
	w.c.metrics.of(w.decision.names).let(w.decision.exempt, w.seats, w.begun.Sub(w.came))
}

func (w *waiting) done(watch bool) {
	w.c.metrics.of(w.decision.names).done(watch, w.seats, time.Since(w.begun))
}

func (w *waiting) serve() (retryAfter string) {
	ctx, cancel := w.c.mayWait(w.r.HTTP.Context(), w.came)
	defer cancel()
	w.handle(ctx, func() {
		w.let()
		defer w.done(false)
		w.next(w.r.HTTP)
	})
	return w.refused()
}

// refused returns after how many seconds a request that was not let in may come back.
func (w *waiting) refused() string {
	if !w.begun.IsZero() {
		return ""
	}
	w.decision.mark(w.r.Header)
	w.c.metrics.of(w.decision.names).refused.Observe(time.Since(w.came).Seconds())
	w.c.dropped.RecordDroppedRequest(w.decision.names.level)
	return strconv.FormatInt(w.c.dropped.GetRetryAfter(w.decision.names.level), 10)
}

// longestWait is upstream's.
const longestWait = time.Minute

// mayWait bounds how long a request may wait in a queue, as upstream does: for a quarter of its
// time.
func (c *Controller) mayWait(ctx context.Context, came time.Time) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return ctx, func() {}
	}
	limit := c.o.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = deadline.Sub(came)
	}
	return context.WithDeadline(ctx, came.Add(min(limit/4, longestWait)))
}
