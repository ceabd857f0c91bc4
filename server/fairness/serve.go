package fairness

import (
	"context"
	"net/http"
	"strconv"
	"sync"
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
	Begun  func() // of a watch: is called when it has begun or ended; may be nil
}

// Seat is what a request has while it works. Leave gives it back before the request has ended, for
// others, and may be called more than once, by any goroutine.
type Seat interface{ Leave() }

// Serve calls next when there is a seat for the request, and returns when next has returned. If the
// request is turned away, next is not called, and Serve returns the number of seconds after which
// the client may come back; otherwise the number is empty. For long-running requests other than
// watches, which have no seats, Serve must not be called.
//
// A request has its seat until next returns or leaves it; a watch at most until its handler calls
// flowcontrol.WatchInitialized with the context of the request that next gets.
func (c *Controller) Serve(r *Request, next func(*http.Request, Seat)) (retryAfter string) {
	q := questionOf(r.Info)
	if d := c.memory.recall(q, r.User); d != nil {
		t := &ticket{decision: d, who: r.User, info: r.Info, width: c.widthOf(r, d.names), begun: time.Now(), metrics: c.metrics.of(d.names)}
		if d.level.enter(t) {
			c.serveDirectly(r, t, next)
			return ""
		}
	}
	w := &waiting{c: c, r: r, question: q, came: time.Now(), next: next}
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
func (c *Controller) serveDirectly(r *Request, t *ticket, next func(*http.Request, Seat)) {
	t.decision.mark(r.Header)
	t.metrics.let(t.decision.exempt, t.width.MaxSeats(), 0)
	defer t.Leave() // also a watch that fails may never have begun
	if r.Info.Verb != "watch" {
		next(r.HTTP, t)
		return
	}
	c.watch(r, t, next)
}

// Leave implements Seat.
func (t *ticket) Leave() {
	if t.left.Swap(true) {
		return
	}
	t.decision.level.leave(t)
	t.metrics.done(t.info.Verb == "watch", t.width.MaxSeats(), time.Since(t.begun))
}

// watch serves a watch that was let in, and counts it for the width of writes.
func (c *Controller) watch(r *Request, seat Seat, next func(*http.Request, Seat)) {
	if forget := c.upstream.RegisterWatch(r.HTTP.WithContext(apirequest.WithRequestInfo(r.HTTP.Context(), r.Info))); forget != nil {
		defer forget()
	}
	begun := newSignal(seat, r.Begun)
	defer begun.Signal()
	// A client that does not read its initial events keeps its seat no longer than a request may.
	late := time.AfterFunc(c.o.Timeout, seat.Leave)
	defer late.Stop()
	next(r.HTTP.WithContext(flowcontrol.WithInitializationSignal(r.HTTP.Context(), begun)), seat)
}

// waiting is a request on its way through upstream's queues.
type waiting struct {
	c        *Controller
	r        *Request
	question question
	came     time.Time
	next     func(*http.Request, Seat)

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

func (w *waiting) done() {
	w.c.metrics.of(w.decision.names).done(w.r.Info.Verb == "watch", w.seats, time.Since(w.begun))
}

// serve has upstream's Handle run in a goroutine of its own, which ends when the request leaves its
// seat: Handle lasts as long as the request has one.
func (w *waiting) serve() (retryAfter string) {
	seat := &queuedSeat{left: make(chan struct{})}
	defer seat.Leave()
	start, handled := make(chan struct{}), make(chan any, 1)
	go func() {
		defer func() { handled <- recover() }()
		ctx, cancel := w.c.mayWait(w.r.HTTP.Context(), w.came)
		defer cancel()
		w.handle(ctx, func() {
			w.let()
			defer w.done()
			close(start)
			<-seat.left
		})
	}()
	select {
	case <-start:
		defer func() {
			seat.Leave()
			if reason := <-handled; reason != nil {
				panic(reason)
			}
		}()
		w.run(seat)
		return ""
	case reason := <-handled:
		if reason != nil {
			panic(reason)
		}
		return w.refused()
	}
}

func (w *waiting) run(seat Seat) {
	if w.r.Info.Verb == "watch" {
		w.c.watch(w.r, seat, w.next)
		return
	}
	w.next(w.r.HTTP, seat)
}

// queuedSeat is the seat of a request that has come through the queues.
type queuedSeat struct {
	once sync.Once
	left chan struct{}
}

// Leave implements Seat.
func (s *queuedSeat) Leave() { s.once.Do(func() { close(s.left) }) }

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

// signal is how the handler of a watch tells that it has begun: the watch needs no seat any more.
type signal struct {
	once  sync.Once
	seat  Seat
	begun func() // may be nil
}

func newSignal(seat Seat, begun func()) *signal { return &signal{seat: seat, begun: begun} }

// Signal tells that the watch has begun, or ended; only the first call counts.
func (s *signal) Signal() {
	s.once.Do(func() {
		s.seat.Leave()
		if s.begun != nil {
			s.begun()
		}
	})
}

// Wait is not called: nobody waits for a watch to begin but through its seat.
func (s *signal) Wait() {}
