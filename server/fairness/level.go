package fairness

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/util/flowcontrol/debug"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/eventclock"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset"
	fcmetrics "k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// levels makes the queues of priority levels for upstream's controller.
type levels struct {
	upstream fairqueuing.QueueSetFactory
	memory   *memory
}

func newLevels(clock eventclock.Interface, m *memory) *levels {
	return &levels{upstream: queueset.NewQueueSetFactory(clock), memory: m}
}

// BeginConstruction is called for a new priority level, with upstream's lock held.
func (f *levels) BeginConstruction(config fairqueuing.QueuingConfig, requests fcmetrics.RatioedGaugePair, seats fcmetrics.RatioedGauge, demand fcmetrics.Gauge) (fairqueuing.QueueSetCompleter, error) {
	l := &level{
		name: config.Name, memory: f.memory, direct: map[*ticket]struct{}{},
		gauges: gauges{requests: requests.RequestsExecuting, seats: seats, demand: demand},
	}
	next, err := f.upstream.BeginConstruction(config, requests, seats, &l.gauges)
	return &completer{l, next, config}, err
}

// level is the queues of a priority level: upstream's, and a way around them.
//
// As long as nobody waits and there is a free seat, a request takes the seat directly: that costs a
// tenth of the way through upstream's queues, whose order does not matter then. The first request
// that finds no seat waits in the queues, and so does every request after it until nobody waits any
// more. The queues have only those seats that direct requests do not have, and get theirs when they
// leave: together they have no more seats than the level, but for what upstream allows a request
// that is wider than all seats of the queues.
type level struct {
	name   string
	memory *memory

	mu         sync.Mutex // guards what follows, but for gauges; taken after upstream's lock of all levels, and before that of queues
	queues     fairqueuing.QueueSet
	config     fairqueuing.QueuingConfig
	limit      fairqueuing.DispatchingConfig // of the level
	given      int                           // seats that queues has
	direct     map[*ticket]struct{}          // requests that have passed by
	dispatched int                           // requests ever, on both ways

	gauges gauges
}

// exempt tells whether the level has no limit. Upstream says so by a negative number of queues.
func (l *level) exempt() bool { return l.config.DesiredNumQueues < 0 }

// gauges are the metrics of a level that upstream's queues set, and direct requests too. The
// embedded Gauge is nil: queues only set the demand.
type gauges struct {
	fcmetrics.Gauge
	requests, seats fcmetrics.RatioedGauge
	demand          fcmetrics.Gauge // from which upstream derives the seats that levels lend

	taken   atomic.Int64 // seats of direct requests
	wanted  atomic.Int64 // seats of requests in queues, whether they wait or run
	waiting atomic.Int64 // requests that wait in queues
}

// Set takes the demand of the queues.
func (g *gauges) Set(seats float64) {
	g.wanted.Store(int64(seats))
	g.demand.Set(seats + float64(g.taken.Load()))
}

func (g *gauges) add(requests, seats int) {
	g.requests.Add(float64(requests))
	g.seats.Add(float64(seats))
	g.demand.Set(float64(g.taken.Add(int64(seats)) + g.wanted.Load()))
}

// completer is a change of a level's configuration.
type completer struct {
	level  *level
	next   fairqueuing.QueueSetCompleter
	config fairqueuing.QueuingConfig
}

// BeginConfigChange is called with upstream's lock of all levels held.
func (l *level) BeginConfigChange(config fairqueuing.QueuingConfig) (fairqueuing.QueueSetCompleter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := l.queues.BeginConfigChange(config)
	return &completer{l, next, config}, err
}

// Complete is called with upstream's lock of all levels held, at every change of the objects and
// every ten seconds, when seats are lent.
func (c *completer) Complete(limit fairqueuing.DispatchingConfig) fairqueuing.QueueSet {
	l := c.level
	l.mu.Lock()
	defer l.mu.Unlock()
	l.config, l.limit = c.config, limit
	l.give(c.next)
	l.memory.forget()
	return l
}

// give tells the queues how many seats they have; l.mu is held.
func (l *level) give(change fairqueuing.QueueSetCompleter) {
	limit := l.limit
	l.given = limit.ConcurrencyLimit - int(l.gauges.taken.Load())
	limit.ConcurrencyLimit = max(0, l.given)
	l.queues = change.Complete(limit)
}

// giveAnew is give when direct requests have come or gone; l.mu is held.
func (l *level) giveAnew() {
	if l.exempt() || l.given == l.limit.ConcurrencyLimit-int(l.gauges.taken.Load()) {
		return
	}
	if change, err := l.queues.BeginConfigChange(l.config); err == nil { // the configuration is known to be good
		l.give(change)
	}
}

// enter lets a request in directly, unless it must go to the queues. A request that was let in must
// leave.
func (l *level) enter(t *ticket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	seats := t.width.MaxSeats()
	if !l.exempt() && (l.gauges.waiting.Load() > 0 || l.seats()+seats > l.limit.ConcurrencyLimit) {
		return false
	}
	l.dispatched++
	l.direct[t] = struct{}{}
	l.gauges.add(1, seats)
	return true
}

// seats returns how many are wanted or taken.
func (l *level) seats() int { return int(l.gauges.taken.Load() + l.gauges.wanted.Load()) }

// leave ends a direct request. Its seats are free when the watchers of what it wrote have had their
// time.
func (l *level) leave(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.direct, t)
	if t.width.AdditionalLatency > 0 {
		l.gauges.add(-1, 0)
		time.AfterFunc(t.width.AdditionalLatency, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.release(0, t)
		})
		return
	}
	l.release(-1, t)
}

// release frees the seats of a direct request; l.mu is held.
func (l *level) release(requests int, t *ticket) {
	l.gauges.add(requests, -t.width.MaxSeats())
	if l.gauges.waiting.Load() > 0 {
		l.giveAnew()
	}
}

// waitingKey is where the context of a request that upstream handles has its *waiting.
type waitingKey struct{}

// StartRequest sends a request to the queues. It does not wait: Finish does. It is called with
// upstream's lock held, and is the one place where upstream shows which level it has chosen.
func (l *level) StartRequest(ctx context.Context, width *fcrequest.WorkEstimate, hash uint64, distinguisher, schema string, info, who any, note fairqueuing.QueueNoteFn) (fairqueuing.Request, bool) {
	ctx.Value(waitingKey{}).(*waiting).decision.level = l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveAnew()
	if l.config.DesiredNumQueues == 0 && l.given < width.MaxSeats() && l.gauges.taken.Load() > 0 {
		// Upstream would let the request in if it had no other.
		fcmetrics.AddReject(ctx, l.name, schema, "concurrency-limit")
		return nil, false
	}
	r, idle := l.queues.StartRequest(ctx, width, hash, distinguisher, schema, info, who, func(in bool) {
		if in {
			l.gauges.waiting.Add(1)
		} else {
			l.gauges.waiting.Add(-1)
		}
		note(in)
	})
	if r == nil {
		return nil, idle
	}
	return &queued{r, l}, false
}

// queued is a request in queues.
type queued struct {
	fairqueuing.Request
	level *level
}

// Finish waits for a seat, runs the request with it, and tells whether the queues are idle.
func (r *queued) Finish(run func()) bool {
	return r.Request.Finish(func() {
		r.level.mu.Lock()
		r.level.dispatched++
		r.level.mu.Unlock()
		run()
	})
}

// IsIdle tells whether no request waits or runs.
func (l *level) IsIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.direct) == 0 && l.queues.IsIdle()
}

// Dump describes the level for the debug pages.
func (l *level) Dump(details bool) debug.QueueSetDump {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.queues.Dump(details)
	d.Dispatched = l.dispatched
	d.Executing += len(l.direct)
	d.SeatsInUse += int(l.gauges.taken.Load())
	for t := range l.direct {
		d.QueuelessExecutingRequests = append(d.QueuelessExecutingRequests, t.dump(details))
	}
	return d
}
