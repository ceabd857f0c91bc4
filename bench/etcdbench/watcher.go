package etcdbench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/plinth-io/plinth/bench/measure"
)

// maxNumber bounds the numbers that watchers believe.
const maxNumber = 1 << 30

// watcher is one watch of a resource, and what came.
type watcher struct {
	resource uint8

	mu            sync.Mutex // guards all below
	puts, deletes marks
	got           int // different events
	again         int // events that came twice
	disorder      int // events of a revision that is not above the last one's
	foreign       int // events that are of no write
	last          int64
	samples       []time.Duration
	err           error
}

// audience is all watches of a measurement.
type audience struct {
	ledger   ledger
	watchers []*watcher
	cancel   context.CancelFunc
	ended    sync.WaitGroup
}

// seat opens watches that begin now, in turn of each resource.
func (e *endpoint) seat(ctx context.Context, watchers, resources int, prefix func(resource uint8) string) (*audience, error) {
	now, err := e.clients[0].Kubernetes.Get(ctx, prefix(0), kubernetes.GetOptions{})
	if err != nil {
		return nil, err
	}
	a := &audience{}
	ctx, a.cancel = context.WithCancel(clientv3.WithRequireLeader(ctx))
	for i := range watchers {
		w := &watcher{resource: uint8(i % resources), last: now.Revision}
		events := e.client(i).Watch(ctx, prefix(w.resource), clientv3.WithPrefix(), clientv3.WithPrevKV(),
			clientv3.WithRev(now.Revision+1), clientv3.WithCreatedNotify())
		a.watchers = append(a.watchers, w)
		if first, ok := <-events; !ok || first.Err() != nil {
			a.end()
			return nil, fmt.Errorf("watch: %w", cause(ctx, first.Err()))
		} else if !first.Created {
			w.receive(first)
		}
		a.ended.Go(func() { w.follow(ctx, events) })
	}
	return a, nil
}

func cause(ctx context.Context, err error) error {
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = errors.New("it was closed")
	}
	return err
}

// follow receives until ctx ends or the watch does, which is an error.
func (w *watcher) follow(ctx context.Context, events clientv3.WatchChan) {
	for response := range events {
		w.receive(response)
	}
	if ctx.Err() == nil {
		w.fail(errors.New("the watch was closed"))
	}
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *watcher) receive(response clientv3.WatchResponse) {
	arrived := time.Now()
	if err := response.Err(); err != nil {
		w.fail(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range response.Events {
		w.take((*mvccpb.Event)(event), arrived)
	}
}

// take notes an event. The value that was deleted says which write made it. The caller holds mu.
func (w *watcher) take(event *mvccpb.Event, arrived time.Time) {
	value, into := event.Kv.Value, &w.puts
	if event.Type == mvccpb.DELETE {
		value, into = nil, &w.deletes
		if event.PrevKv != nil {
			value = event.PrevKv.Value
		}
	}
	n, sent, ok := writeOf(value)
	switch {
	case !ok || n < 0 || n > maxNumber:
		w.foreign++
		return
	case !into.add(n):
		w.again++
		return
	case event.Kv.ModRevision <= w.last:
		w.disorder++
	}
	w.got++
	w.last = max(w.last, event.Kv.ModRevision)
	if event.Type == mvccpb.PUT {
		w.samples = append(w.samples, arrived.Sub(sent))
	}
}

// settlePatience is how long no event may come until those that have not come count as lost.
const settlePatience = 30 * time.Second

// settle waits until all watches have all events.
func (a *audience) settle(ctx context.Context) {
	came, since := -1, time.Now()
	for ctx.Err() == nil && time.Since(since) < settlePatience {
		got, missing := a.count()
		if !missing && !a.ledger.doubtful() {
			return
		}
		if got != came {
			came, since = got, time.Now()
		} else if !missing && time.Since(since) > time.Second {
			return
		}
		sleep(ctx, 5*time.Millisecond)
	}
}

// count returns how many events have come, and whether a watch that still runs has fewer than were
// acknowledged.
func (a *audience) count() (got int, missing bool) {
	for _, w := range a.watchers {
		w.mu.Lock()
		got += w.got
		missing = missing || w.err == nil && w.got < a.ledger.expected(w.resource)
		w.mu.Unlock()
	}
	return got, missing
}

func (a *audience) end() {
	a.cancel()
	a.ended.Wait()
}

// verdict is what the watches of a measurement got.
type verdict struct {
	expected, lost, again, disorder, strange int
	delays                                   []time.Duration
	err                                      error // of the first watch that failed
}

// judge compares what came with what was written. The audience has ended.
func (a *audience) judge() (v verdict) {
	for _, w := range a.watchers {
		lost, strange := a.ledger.audit(w)
		v.expected += a.ledger.expected(w.resource)
		v.lost += lost
		v.strange += strange + w.foreign
		v.again += w.again
		v.disorder += w.disorder
		v.delays = append(v.delays, w.samples...)
		if v.err == nil {
			v.err = w.err
		}
	}
	return v
}

func (v *verdict) faults() sample {
	note := fmt.Sprintf("of %s", measure.Number(float64(v.expected)))
	for _, f := range []struct {
		n    int
		what string
	}{{v.lost, "lost"}, {v.again, "repeated"}, {v.disorder, "out of order"}, {v.strange, "of no write"}} {
		if f.n > 0 {
			note += fmt.Sprintf(", %s %s", measure.Number(float64(f.n)), f.what)
		}
	}
	if v.err != nil {
		note += "; a watch ended: " + plain(v.err)
	}
	return sample{value: float64(v.lost + v.again + v.disorder + v.strange), note: note}
}

// delay is the sample of the 99th percentile of delays.
func (v *verdict) delay() sample {
	s := sample{samples: v.delays}
	if l := measure.LatencyOf(v.delays); l != nil {
		s.value = l.P99
	} else {
		s.none = true
	}
	return s
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
